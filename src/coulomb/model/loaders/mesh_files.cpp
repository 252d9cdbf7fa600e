// The only unit that sees Assimp. In a wheel Python reads meshes, and there is none.
#include "coulomb/model/loaders/mesh_files.hpp"

#include <tinyxml2.h>

#include <filesystem>
#include <sstream>
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

/// The name that a folder's package.xml gives to the package; empty if there is none.
std::string package_name(const std::string& folder) {
  const std::string file = folder + "/package.xml";
  tinyxml2::XMLDocument document;
  if (!is_file(file) || document.LoadFile(file.c_str()) != tinyxml2::XML_SUCCESS) return "";
  const tinyxml2::XMLElement* package = document.FirstChildElement("package");
  const tinyxml2::XMLElement* name = package == nullptr ? nullptr : package->FirstChildElement("name");
  const char* text = name == nullptr ? nullptr : name->GetText();
  if (text == nullptr) return "";

  // Blanks around it are not part of it.
  std::istringstream words(text);
  std::string word;
  words >> word;
  return word;
}

/// The path of package://name/rest below the folder whose package.xml has this name; empty if there is none.
std::string find_in_package(const std::string& name, const std::vector<std::string>& folders) {
  const std::string scheme = "package://";
  if (name.compare(0, scheme.size(), scheme) != 0) return "";
  const std::size_t end = name.find('/', scheme.size());
  if (end == std::string::npos) return "";
  const std::string package = name.substr(scheme.size(), end - scheme.size());
  for (const std::string& folder : folders) {
    const std::string path = folder + name.substr(end);
    if (is_file(path) && package_name(folder) == package) return path;
  }
  return "";
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

std::string find_mesh(const std::string& name, const std::vector<std::string>& folders, const std::string& what,
                      std::string* other_folder) {
  if (other_folder) other_folder->clear();
  const std::string rest = without_scheme(name);
  if (is_file(rest)) return rest;
  std::string tried;
  for (const std::string& folder : folders) {
    const std::string path = folder + "/" + rest;
    if (is_file(path)) return path;
    tried += (tried.empty() ? "'" : ", '") + folder + "'";
  }
  // A package may lie in a folder of another name.
  const std::string path = find_in_package(name, folders);
  if (!path.empty()) return path;

  // Or have been copied under another name, without its package.xml: what is below it tells.
  const std::size_t end = rest.find('/');
  const bool of_package = rest.size() < name.size() && name.compare(0, 7, "file://") != 0;
  for (const std::string& folder : folders) {
    if (!of_package || end == std::string::npos) break;
    const std::string found = folder + rest.substr(end);
    if (!is_file(found) || !package_name(folder).empty()) continue;
    if (other_folder) *other_folder = folder;
    return found;
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
