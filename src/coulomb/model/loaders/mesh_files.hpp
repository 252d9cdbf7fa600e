// Files of meshes that a robot's description names: where they are, and their points.
#pragma once

#include <string>
#include <vector>

namespace coulomb {

/// The user's folders, then every folder above the robot's file, where package://name/... is usually found. path: empty where there is no
/// file.
std::vector<std::string> package_folders(const std::string& path, std::vector<std::string> folders);

/// The path of a mesh: as it is named, or below one of the folders; package://, model:// and file:// are left out. Of package://name/rest
/// also rest below the folder whose package.xml has that name, and if there is none below any of the folders that has no package.xml:
/// `other_folder` is then that folder, else empty. Throws std::invalid_argument that opens with `what` and lists the folders.
std::string find_mesh(const std::string& name, const std::vector<std::string>& folders, const std::string& what,
                      std::string* other_folder = nullptr);

/// Points (3 n, metres, no scale) of a file in any of Assimp's formats, placed as the file's nodes say; its unit and up axis do not count.
/// Throws std::invalid_argument that opens with `what`, also where the library was built without Assimp.
std::vector<double> read_mesh_points(const std::string& path, const std::string& what);

}  // namespace coulomb
