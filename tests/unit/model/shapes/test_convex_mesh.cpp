// Building convex meshes: merged faces, adjacency, hulls, and the errors of bad input.
#include <stdexcept>
#include <string>

#include "check.hpp"
#include "collision/scene.hpp"

using namespace coulomb;
using namespace coulomb::test;

namespace {

template <class Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return "";
}

void check_adjacency(const ConvexMesh& mesh) {
  int edges = 0;
  for (int f = 0; f < mesh.num_faces(); ++f) {
    const int begin = mesh.face_start[f], end = mesh.face_start[f + 1];
    for (int k = begin; k < end; ++k) {
      const int u = mesh.face_vertices[k], v = mesh.face_vertices[k + 1 == end ? begin : k + 1],
                g = mesh.face_neighbour[k];
      CHECK(g != f);
      bool found = false;
      const int gb = mesh.face_start[g], ge = mesh.face_start[g + 1];
      for (int j = gb; j < ge; ++j)
        found = found || (mesh.face_vertices[j] == v && mesh.face_vertices[j + 1 == ge ? gb : j + 1] == u);
      CHECK(found);
      ++edges;
      CHECK_NEAR(dot3(&mesh.face_normals[3 * f], &mesh.vertices[3 * u]), mesh.face_offsets[f], 1e-6);
    }
    CHECK(dot3(&mesh.face_normals[3 * f], mesh.center.data()) < mesh.face_offsets[f]);
  }
  CHECK(mesh.num_vertices() - edges / 2 + mesh.num_faces() == 2);
  CHECK(static_cast<int>(mesh.neighbours.size()) == edges);
}

}  // namespace

int main() {
  const auto box = box_mesh(1, 2, 3);
  CHECK(box->num_vertices() == 8 && box->num_faces() == 6);
  check_adjacency(*box);
  CHECK_NEAR(box->aabb_half[2], 3, 0);
  const auto round = faceted_ellipsoid(1, 1.2, 0.9, 5, 9);
  CHECK(round->num_vertices() == 47);
  check_adjacency(*round);

  // doubled vertices, inward triangles, a vertex in the middle of an edge and one in the middle of a face
  std::vector<double> cloud;
  for (int k = 0; k < 8; ++k)
    for (int i = 0; i < 3; ++i) cloud.push_back(k >> i & 1 ? 0.1 : -0.1);
  cloud.insert(cloud.end(), {0, 0, 0, 0.05, 0, 0.1, 0.1, 0.1, 0.1, 0.1, 0, 0.1});
  const auto hull = make_convex_hull(cloud, "cube");
  CHECK(hull->num_vertices() == 8 && hull->num_faces() == 6);
  check_adjacency(*hull);
  Random random;
  std::vector<double> points;
  for (int k = 0; k < 300; ++k) {
    double d[3];
    random.direction(d);
    points.insert(points.end(), d, d + 3);
  }
  const auto ball = make_convex_hull(points, "ball");
  CHECK(ball->num_vertices() == 300);
  check_adjacency(*ball);

  CHECK(error_of([] { make_convex_hull({0, 0, 0, 1, 0, 0, 0, 1, 0, 1, 1, 0, .5, .2, 0}, "flat"); }).find("flat") !=
        std::string::npos);
  CHECK(error_of([] { make_convex_hull({0, 0, 0, 1, 0, 0, 0, 1, 0}, "few"); }).find("few") != std::string::npos);
  const std::vector<double> v{0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1};
  CHECK(error_of([&] { make_convex_mesh(v, {0, 2, 1, 0, 1, 3, 1, 2, 3, 0, 3, 9}, "t"); }).find("triangles[11]") !=
        std::string::npos);
  CHECK(error_of([&] { make_convex_mesh(v, {0, 2, 1, 0, 1, 3, 1, 2, 3, 0, 3, 1}, "t"); }) != "");
  CHECK(make_convex_mesh(v, {0, 1, 2, 0, 3, 1, 1, 3, 2, 0, 2, 3}, "inward")->num_faces() == 4);
  return report();
}
