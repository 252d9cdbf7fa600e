#include "coulomb/parameters/frame_motion.hpp"

#include <cstring>

#include "coulomb/collision/contact.hpp"
#include "coulomb/collision/motion/shape_motion.hpp"
#include "coulomb/constraints/constraint_rows.hpp"
#include "coulomb/dynamics/dynamics.hpp"
#include "coulomb/dynamics/outputs.hpp"
#include "coulomb/dynamics/spatial.hpp"
#include "coulomb/parameters.hpp"
#include "coulomb/parameters/parameter_kind.hpp"

// A subtree displaced by xi turns the columns behind it: dV_X = xi x (V_X - V_parent), as the virtual joint of placement_kinds.cpp.
// A contact moves by (twist of A's surface, twist of B's) through ContactMotion, both taken at the contact's point.

namespace coulomb {
namespace {

/// The body belongs to the subtree; -1: there is none.
bool inside(const Model& model, int subtree, int body) {
  return subtree >= 0 && body >= subtree && body < model.body_subtree_end[subtree];
}

/// Adds how a contact moves with a twist of body A (side 0) or B (1) about the tree's reference point.
void add_twist(const Model& model, const DynamicsWorkspace& dynamics, const Contact& contact,
               const ContactMotion& motion, int side, const double* twist, ContactChange& out) {
  double arm[3];
  double at[6];

  // The twist at the contact's point.
  relative_point(model, dynamics, side == 0 ? contact.body_a : contact.body_b, contact.point, arm);
  copy3(twist, at);
  copy3(twist + 3, at + 3);
  add_cross3(at + 3, arm, at);

  // As the surfaces move (G5).
  for (int c = 0; c < 6; ++c) {
    for (int i = 0; i < 3; ++i) {
      out.point[i] += motion.dpoint[i][6 * side + c] * at[c];
      out.normal[i] += motion.dnormal[i][6 * side + c] * at[c];
    }
    out.depth -= motion.ddistance[6 * side + c] * at[c];
  }
}

/// Change of a row by the scalars of an item that change the shapes of surfaces.
void add_surface_slopes(const OutputRow& row, const ParameterSet::Item& item, double* out) {
  const auto add = [&](int scalar, double slope) {
    if (scalar >= 0) out[item.first + scalar] += slope;
  };
  for (const OutputRow::Surface& surface : row.surfaces) {
    if (item.element.index != surface.geometry) continue;
    for (int k = 0; k < 3; ++k) {
      add(item.kind->size_scalar(item.element, k), surface.by_size[k]);
      for (const auto& [vertex, slope] : surface.by_vertex)
        add(item.kind->vertex_scalar(item.element, vertex, k), slope[k]);
    }
  }
}

/// Change of a row by the scalars of an item that are in the reading itself.
void add_scalar_slopes(const OutputRow& row, const ParameterSet::Item& item, double* out) {
  for (const OutputRow::Scalar& scalar : row.scalars)
    if (item.element.index == scalar.index && std::strcmp(item.kind->name(), scalar.kind) == 0)
      out[item.first + scalar.number] += scalar.slope;
}

}  // namespace

double row_change(const Model& model, const DynamicsWorkspace& dynamics, const OutputRow& row,
                  const FrameMotion& motion) {
  // A limit of a joint or a tendon that moves.
  const bool of_limit =
      (row.joint >= 0 && row.joint == motion.joint) || (row.tendon >= 0 && row.tendon == motion.tendon);
  double change = of_limit ? motion.dlower * row.dlower + motion.dupper * row.dupper : 0.0;

  const Spatial xi = load6(motion.xi);
  for (const OutputRow::Term& term : row.terms) {
    // A subtree that is displaced turns its columns, but not those that carry it.
    if (inside(model, motion.subtree, term.body)) {
      const Spatial V = load6(dynamics.body_twist.data() + 8 * term.body);
      const Spatial before = load6(dynamics.body_twist.data() + 8 * model.body_parent[motion.subtree]);
      const bool root = model.body_tree[model.body_parent[motion.subtree]] < 0;
      change += dot(load6(term.G), xi) + dot(load6(term.H), cross_motion(xi, root ? V : V - before));
    }

    // A geometry on its body.
    if (motion.geometry >= 0 && term.geometry == motion.geometry) {
      change += dot(load6(term.G), xi);
    }

    // A centre of mass in its body, or a mass.
    if (motion.body >= 0 && term.body == motion.body && term.at_com) {
      double shift[3];
      rotate(dynamics.body_rotation.data() + 9 * term.body, motion.dcom, shift);
      change += dot3(term.G, shift) + term.mass_slope * motion.dmass;
      for (int k = 0; k < 6; ++k)
        change += term.inertia_slope[k] * motion.dinertia[k];
    }
  }
  return change;
}

void add_output_parameters(const Model& model, const DynamicsWorkspace& dynamics, const std::vector<OutputRow>& rows,
                           const ParameterSet& set, double* out, int stride) {
  // Every scalar moves frames, and every row feels those that its terms are of.
  std::vector<FrameMotion> motions;
  for (const ParameterSet::Item& item : set.items()) {
    motions.clear();
    item.kind->frame_motions(model, dynamics, item.element, motions);
    for (std::size_t k = 0; k < motions.size(); ++k)
      for (std::size_t r = 0; r < rows.size(); ++r)
        out[r * stride + item.first + k] += row_change(model, dynamics, rows[r], motions[k]);
    for (std::size_t r = 0; r < rows.size(); ++r) {
      add_surface_slopes(rows[r], item, out + r * stride);
      add_scalar_slopes(rows[r], item, out + r * stride);
    }
  }
}

void add_contact_columns(const Model& model, const DynamicsWorkspace& dynamics, const Contact& contact,
                         const ContactMotion& motion, ContactChange* by_q) {
  // By the dofs of both bodies.
  for (int side = 0; side < 2; ++side) {
    const int last = model.body_last_dof[side == 0 ? contact.body_a : contact.body_b];
    if (last < 0) continue;
    const int* path = model.dof_path.data() + model.dof_row[last];
    for (int k = 0; k <= model.dof_depth[last]; ++k)
      add_twist(model, dynamics, contact, motion, side, dynamics.columns.data() + 8 * path[k], by_q[path[k]]);
  }
}

void add_contact_columns(const Model& model, const DynamicsWorkspace& dynamics, const Contact& contact,
                         const ContactMotion& motion, const ParameterSet& set, ContactChange* by_parameters) {
  // Scalars move frames that carry the surfaces ...
  std::vector<FrameMotion> motions;
  std::vector<ShapeMotion> shapes;
  for (const ParameterSet::Item& item : set.items()) {
    motions.clear();
    shapes.clear();
    item.kind->frame_motions(model, dynamics, item.element, motions);

    for (std::size_t k = 0; k < motions.size(); ++k)
      for (int side = 0; side < 2; ++side) {
        const int body = side == 0 ? contact.body_a : contact.body_b;
        const int geometry = side == 0 ? contact.geometry_a : contact.geometry_b;
        if (inside(model, motions[k].subtree, body) || (motions[k].geometry >= 0 && motions[k].geometry == geometry))
          add_twist(model, dynamics, contact, motion, side, motions[k].xi, by_parameters[item.first + k]);
      }

    // ... or the surfaces themselves.
    item.kind->surface_motions(model, dynamics, contact, item.element, shapes);
    for (std::size_t k = 0; k < shapes.size(); ++k) {
      ContactChange& out = by_parameters[item.first + k];
      add3(out.point, shapes[k].dpoint, out.point);
      add3(out.normal, shapes[k].dnormal, out.normal);
      out.depth -= shapes[k].ddistance;
    }
  }
}

}  // namespace coulomb
