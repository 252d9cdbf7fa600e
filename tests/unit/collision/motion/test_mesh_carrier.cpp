// What of a mesh carries a contact (find_carrier), for contacts put where detection seldom puts them: a point held inside a face, an edge
// that neither the face nor the vertex towards the other shape has. The carrier holds the witness, and moves as its vertices do.
#include "check.hpp"
#include "collision/scene.hpp"
#include "coulomb/collision/contact.hpp"
#include "coulomb/collision/motion/shape_motion.hpp"

using namespace coulomb;
using namespace coulomb::test;

namespace {

constexpr double half[3] = {0.1, 0.13, 0.08};

/// A box as a mesh, turned and moved, beside a ball that stands for the other shape.
struct Posed {
  Scene scene;
  double position[3] = {0.3, -0.2, 0.5};
  double rotation[9];

  explicit Posed(Random& random) {
    scene.add(ShapeType::mesh, 0, 0, 0, box_mesh(half[0], half[1], half[2]));
    scene.add(ShapeType::sphere, 0.1, 0, 0);
    random.rotation(rotation);
  }

  /// A contact of the mesh (A) at `at`, with `out` as its outward normal there, both in the mesh's frame.
  Contact contact(const double* at, const double* out) const {
    Contact c;
    c.geometry_a = 0;
    c.geometry_b = 1;
    c.feature = -1;
    double world[3];
    rotate(rotation, out, c.normal);
    rotate(rotation, at, world);
    for (int i = 0; i < 3; ++i) {
      c.normal[i] = -c.normal[i];  // from B to A
      c.point_a[i] = c.point_b[i] = c.point[i] = position[i] + world[i];
    }
    return c;
  }

  MeshCarrier carrier(const Contact& c) const {
    MeshCarrier out;
    find_carrier(scene.model, c, true, position, rotation, out);
    return out;
  }
};

/// The vertices by their weights are the witness.
void check_weights(const MeshCarrier& c, const double* at) {
  double sum = 0;
  double place[3] = {0, 0, 0};
  for (int k = 0; k < c.num; ++k) {
    CHECK(c.weight[k] >= -1e-12);
    sum += c.weight[k];
    axpy3(c.weight[k], c.mesh->vertices.data() + 3 * c.list[k], place);
  }
  CHECK_NEAR(sum, 1, 1e-12);
  for (int i = 0; i < 3; ++i) CHECK_NEAR(place[i], at[i], 1e-12);
}

/// A point inside each face, near each of its corners: three corners of that face hold it, and carry it as far as their weights say.
void inside_faces(Random& random) {
  const Posed posed(random);
  for (int face = 0; face < 6; ++face) {
    for (int quarter = 0; quarter < 4; ++quarter) {
      const int axis = face / 2;
      double out[3] = {0, 0, 0};
      out[axis] = face % 2 ? 1 : -1;
      double at[3];
      for (int i = 0; i < 3; ++i) at[i] = half[i] * random.uniform(0.1, 0.8);
      at[axis] = half[axis] * out[axis];
      at[(axis + 1) % 3] *= quarter & 1 ? 1 : -1;
      at[(axis + 2) % 3] *= quarter & 2 ? 1 : -1;

      const Contact contact = posed.contact(at, out);
      const MeshCarrier carrier = posed.carrier(contact);
      CHECK(carrier.role == MeshCarrier::Role::point);
      CHECK(carrier.num == 3);
      check_weights(carrier, at);
      for (int k = 0; k < 3; ++k) CHECK(carrier.mesh->vertices[3 * carrier.list[k] + axis] == at[axis]);

      // The face goes out, and the overlap grows by the weight of the vertex: A's witness moves along -n.
      for (int k = 0; k < 3; ++k) {
        ShapeMotion motion;
        vertex_motion(contact, carrier, carrier.list[k], axis, motion);
        CHECK_NEAR(motion.ddistance, -out[axis] * carrier.weight[k], 1e-12);
      }
    }
  }
}

/// An edge on the far side: of no face towards the other shape, nor of a vertex there.
void far_edges(Random& random) {
  const Posed posed(random);
  for (int along = 0; along < 3; ++along) {
    for (int corner = 0; corner < 4; ++corner) {
      double direction[3] = {0, 0, 0};
      direction[along] = corner & 1 ? 1 : -1;
      double at[3];
      at[along] = half[along] * random.uniform(-0.7, 0.7);
      at[(along + 1) % 3] = half[(along + 1) % 3] * (corner & 1 ? 1 : -1);
      at[(along + 2) % 3] = half[(along + 2) % 3] * (corner & 2 ? 1 : -1);

      // Towards the opposite edge.
      double out[3] = {0, 0, 0};
      out[(along + 1) % 3] = at[(along + 1) % 3] > 0 ? -0.8 : 0.8;
      out[(along + 2) % 3] = at[(along + 2) % 3] > 0 ? -0.6 : 0.6;
      Contact contact = posed.contact(at, out);
      contact.a.num_flat = 1;
      rotate(posed.rotation, direction, contact.a.E[0]);

      const MeshCarrier carrier = posed.carrier(contact);
      CHECK(carrier.role == MeshCarrier::Role::edge);
      CHECK(carrier.num == 2);
      check_weights(carrier, at);
    }
  }
}

/// A vertex that is not the one towards the other shape, nor the one that the contact is named after.
void other_vertices(Random& random) {
  const Posed posed(random);
  for (int v = 0; v < 8; ++v) {
    const double at[3] = {v & 1 ? half[0] : -half[0], v & 2 ? half[1] : -half[1], v & 4 ? half[2] : -half[2]};
    const double out[3] = {at[0] > 0 ? -0.6 : 0.6, 0, at[2] > 0 ? -0.8 : 0.8};
    for (int named = -1; named < 8; ++named) {
      Contact contact = posed.contact(at, out);
      contact.feature = named;
      const MeshCarrier carrier = posed.carrier(contact);
      CHECK(carrier.num == 1);
      check_weights(carrier, at);
    }
  }
}

}  // namespace

int main() {
  Random random;
  inside_faces(random);
  far_edges(random);
  other_vertices(random);
  return report();
}
