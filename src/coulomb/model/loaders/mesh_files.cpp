// The only unit that sees Assimp. In a wheel Python reads meshes, and there is none.
#include "coulomb/model/loaders/mesh_files.hpp"

#include <filesystem>
#include <stdexcept>

#include "coulomb/model/checks.hpp"
#include "coulomb/model/loaders/is_file.hpp"

#ifdef COULOMB_WITH_ASSIMP
#include <assimp/scene.h>

#include <assimp/Importer.hpp>
#endif

namespace coulomb {
namespace {

/// Without the scheme that says where to look.
std::string without_scheme(const std::string& name) {
  for (const std::string scheme : {"package://", "model://", "file://"})
    if (name.compare(0, scheme.size(), scheme) == 0) return name.substr(scheme.size());
  return name;
}

#ifdef COULOMB_WITH_ASSIMP

/// A node's points, and those of the nodes below. `place`: of the node above, in the scene.
void append_points(const aiScene& scene, const aiNode& node, const aiMatrix4x4& place, std::vector<double>& points) {
  // The transform of the root is the file's unit and up axis.
  const aiMatrix4x4 here = node.mParent == nullptr ? place : place * node.mTransformation;
  for (unsigned i = 0; i < node.mNumMeshes; ++i) {
    const aiMesh& mesh = *scene.mMeshes[node.mMeshes[i]];
    for (unsigned k = 0; k < mesh.mNumVertices; ++k) {
      const aiVector3D point = here * mesh.mVertices[k];
      points.insert(points.end(), {point.x, point.y, point.z});
    }
  }
  for (unsigned i = 0; i < node.mNumChildren; ++i)
    append_points(scene, *node.mChildren[i], here, points);
}

#endif

}  // namespace

std::vector<std::string> package_folders(const std::string& path, std::vector<std::string> folders) {
  if (path.empty()) return folders;
  auto folder = std::filesystem::absolute(path).parent_path();
  for (int i = 0; i < 6 && folder.has_relative_path(); ++i, folder = folder.parent_path())
    folders.push_back(folder.string());
  return folders;
}

std::string find_mesh(const std::string& name, const std::vector<std::string>& folders, const std::string& what) {
  const std::string rest = without_scheme(name);
  if (is_file(rest)) return rest;
  std::string tried;
  for (const std::string& folder : folders) {
    const std::string path = folder + "/" + rest;
    if (is_file(path)) return path;
    tried += (tried.empty() ? "'" : ", '") + folder + "'";
  }
  checks::fail(what, "no mesh '" + shortened(name) + "' in " + (tried.empty() ? "the working folder" : tried) +
                         "; name the folder of the package in package_dirs");
}

std::vector<double> read_mesh_points(const std::string& path, const std::string& what) {
#ifdef COULOMB_WITH_ASSIMP
  Assimp::Importer importer;
  const aiScene* scene = importer.ReadFile(path, 0);
  if (scene == nullptr || scene->mRootNode == nullptr) {
    checks::fail(what, "'" + path + "' cannot be read: " + importer.GetErrorString());
  }
  std::vector<double> points;
  append_points(*scene, *scene->mRootNode, aiMatrix4x4(), points);
  if (points.empty()) {
    checks::fail(what, "'" + path + "' has no points");
  }
  return points;
#else
  checks::fail(what, "'" + path +
                         "' cannot be read: this build of Coulomb has no Assimp; configure with "
                         "COULOMB_WITH_ASSIMP=ON, or set UrdfOptions::read_mesh");
#endif
}

}  // namespace coulomb
