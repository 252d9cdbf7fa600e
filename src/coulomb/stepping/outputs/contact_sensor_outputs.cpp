// Contact sensors as outputs: which contacts of the step lie between two groups of geometries, and their forces, points and normals. A number
// of a contact is a function of its force f on the second group, its point p, its normal n from the first group to the second, and its
// distance; its gradient by these four becomes impulses and turns.
#include <algorithm>
#include <cmath>

#include "coulomb/base/small_math.hpp"
#include "coulomb/dynamics/site_zone.hpp"
#include "coulomb/stepping/outputs/force_outputs.hpp"
#include "coulomb/stepping/step_record.hpp"

namespace coulomb {
namespace {

constexpr double unit_axes[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};

bool holds(const Model& model, const GeometryGroup& group, int geometry) {
  const int body = model.geometry_body[geometry];
  switch (group.of) {
    case GeometryGroup::Of::all: return true;
    case GeometryGroup::Of::geometry: return geometry == group.index;
    case GeometryGroup::Of::body: return body == group.index;
    case GeometryGroup::Of::subtree: return body >= group.index && body < model.body_subtree_end[group.index];
    case GeometryGroup::Of::none: return false;
  }
  return false;
}

/// MuJoCo's order of the geometries of a contact, from which the first normal goes: by type, then by number.
bool comes_first(const Model& model, int g, int other) {
  const auto rank = [&](int geometry) {
    switch (model.geometry_type[geometry]) {
      case ShapeType::half_space: return 0;
      case ShapeType::surface: return 1;
      case ShapeType::sphere: return 2;
      case ShapeType::capsule: return 3;
      case ShapeType::ellipsoid: return 4;
      case ShapeType::cylinder: return 5;
      case ShapeType::box: return 6;
      case ShapeType::mesh: return 7;
    }
    return 8;
  };
  return rank(g) != rank(other) ? rank(g) < rank(other) : g < other;
}

/// The first tangent at a normal: y or z, whichever lies farther from it, made orthogonal.
struct Tangent {
  const double* axis;
  const double* n;
  double t[3];
  double length;  ///< before it was made a unit vector

  explicit Tangent(const double* normal) : axis(std::abs(normal[1]) < 0.5 ? unit_axes[1] : unit_axes[2]), n(normal) {
    copy3(axis, t);
    axpy3(-dot3(axis, n), n, t);
    length = norm3(t);
    for (double& x : t)
      x /= length;
  }

  /// out += scale times the covector of dn in c . dt.
  void add_by_normal(const double* c, double scale, double* out) const {
    double across[3];
    copy3(c, across);
    axpy3(-dot3(t, c), t, across);
    const double s = scale / length;
    axpy3(-s * dot3(across, n), axis, out);
    axpy3(-s * dot3(axis, n), across, out);
  }
};

}  // namespace

/// Of one of the contacts that a sensor has.
struct ForceOutputs::SeenContact {
  const BodyRows* rows;
  double sign;      ///< 1: the second group has A
  double flip;      ///< -1: the first group has the geometry that comes second
  double f[3];      ///< N, on the second group
  double m[3];      ///< N m: of torsional and rolling friction, likewise
  double n[3];      ///< from the first group to the second
  const double* p;  ///< point
  double distance;
  double size;  ///< |f|
};

/// How a number follows a contact.
struct ForceOutputs::ContactGradient {
  double f[3] = {0, 0, 0};
  double m[3] = {0, 0, 0};
  double p[3] = {0, 0, 0};
  double n[3] = {0, 0, 0};
  double distance = 0;
};

/// The sensor's contacts: those that push, or that do not part the bodies.
void ForceOutputs::find_contacts(const Sensor& sensor, std::vector<SeenContact>& out) {
  const StepRecord& r = *record_;
  const std::array<GeometryGroup, 2>& groups = sensor.contacts->groups;
  const double h = options_->constraints.timestep;
  for (const BodyRows& b : r.rows.body_rows) {
    if (b.contact < 0) continue;
    const Contact& c = r.collision.contacts[b.contact];
    const double* lambda = r.solution.lambda.data() + b.row;
    if (!(lambda[2] > 0 || c.distance <= 0)) continue;

    // Which geometry is of which group; where both ways fit, as MuJoCo has it.
    const bool a_first = comes_first(*model_, c.geometry_a, c.geometry_b);
    const int first = a_first ? c.geometry_a : c.geometry_b;
    const int second = a_first ? c.geometry_b : c.geometry_a;
    const bool as_is = holds(*model_, groups[0], first) && holds(*model_, groups[1], second);
    if (!as_is && !(holds(*model_, groups[0], second) && holds(*model_, groups[1], first))) continue;
    if (sensor.index >= 0 && !lies_in(model_->sites[sensor.index], c.point)) continue;

    SeenContact seen{
        &b, as_is == a_first ? -1.0 : 1.0, as_is ? 1.0 : -1.0, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}, c.point, c.distance, 0};
    for (int k = 0; k < 3; ++k)
      axpy3(seen.sign / h * lambda[k], b.axes[k], seen.f);
    block_torque(b, lambda, seen.m);
    for (double& x : seen.m)
      x *= seen.sign / h;
    for (int i = 0; i < 3; ++i)
      seen.n[i] = seen.sign * c.normal[i];
    seen.size = norm3(seen.f);
    out.push_back(seen);
  }

  // In the order in which they are told.
  if (sensor.contacts->reduction == ContactReduction::nearest)
    std::stable_sort(out.begin(), out.end(),
                     [](const SeenContact& x, const SeenContact& y) { return x.distance < y.distance; });
  if (sensor.contacts->reduction == ContactReduction::strongest)
    std::stable_sort(out.begin(), out.end(),
                     [](const SeenContact& x, const SeenContact& y) { return x.size > y.size; });
}

/// Is the point in the zone of the site?
bool ForceOutputs::lies_in(const Site& site, const double* point) {
  const FrameState at = frame_state(*model_, where_found(), site.frame);
  double arm[3];
  double p[3];
  sub3(point, at.position, arm);
  rotate_transposed(at.rotation, arm, p);
  return is_in_zone(site, p);
}

/// A number follows one more contact. Impulses add their share to the value when the scalar is closed.
void ForceOutputs::follow_contact(const SeenContact& seen, const ContactGradient& g, Scalar& out) const {
  const BodyRows& b = *seen.rows;
  if (norm3(g.f) > 0) {
    for (int k = 0; k < 3; ++k)
      out.impulses.push_back({b.row + k, seen.sign * dot3(g.f, b.axes[k])});
    out.value -= dot3(g.f, seen.f);

    // The axes turn with the normal.
    Scalar::Turn turned{b.contact, {0, 0, 0}};
    turn_by_normal(b, g.f, seen.sign, turned.by_normal);
    out.turns.push_back(turned);
  }

  // So do those of the rows that turn.
  if (b.size > 3 && norm3(g.m) > 0) {
    for (int k = 3; k < b.size; ++k) {
      double row[3];
      b.angular_row(k, row);
      out.impulses.push_back({b.row + k, seen.sign * dot3(g.m, row)});
    }
    out.value -= dot3(g.m, seen.m);
    Scalar::Turn turned{b.contact, {0, 0, 0}};
    turn_torque_by_normal(b, g.m, seen.sign, turned.by_normal);
    out.turns.push_back(turned);
  }

  // Point, normal and distance move.
  if (norm3(g.n) == 0 && norm3(g.p) == 0 && g.distance == 0) return;
  Scalar::Turn moved{b.contact, {0, 0, 0}};
  moved.of_impulses = false;
  axpy3(seen.sign, g.n, moved.by_normal);
  copy3(g.p, moved.by_point);
  moved.by_depth = -g.distance;
  out.turns.push_back(moved);
}

/// One field of one contact, in scalars from `out` on; returns how many.
int ForceOutputs::tell_contact(const SeenContact& seen, std::uint32_t field, int num_found, Scalar* out) const {
  const Tangent tangent(seen.n);
  double frame[3][3];
  copy3(seen.n, frame[0]);
  for (int i = 0; i < 3; ++i)
    frame[1][i] = seen.flip * tangent.t[i];
  cross3(frame[0], frame[1], frame[2]);

  ContactGradient g;
  switch (field) {
    case ContactSelection::found: out[0].value = num_found; return 1;
    case ContactSelection::distance:
      g.distance = 1;
      out[0].value = seen.distance;
      follow_contact(seen, g, out[0]);
      return 1;
    default: break;
  }

  for (int i = 0; i < 3; ++i) {
    g = {};
    switch (field) {
      case ContactSelection::force:
      case ContactSelection::torque: {
        // e_i . f, e = (n, t, n x t)
        const bool is_force = field == ContactSelection::force;
        const double* f = is_force ? seen.f : seen.m;
        out[i].value = dot3(frame[i], f);
        copy3(frame[i], is_force ? g.f : g.m);
        if (i == 0) copy3(f, g.n);
        if (i == 1) tangent.add_by_normal(f, seen.flip, g.n);
        if (i == 2) {
          double across[3];
          cross3(frame[1], f, g.n);
          cross3(f, frame[0], across);
          tangent.add_by_normal(across, seen.flip, g.n);
        }
        break;
      }
      case ContactSelection::position:
        out[i].value = seen.p[i];
        g.p[i] = 1;
        break;
      case ContactSelection::normal:
        out[i].value = seen.n[i];
        g.n[i] = 1;
        break;
      default: out[i].value = frame[1][i]; tangent.add_by_normal(unit_axes[i], seen.flip, g.n);
    }
    follow_contact(seen, g, out[i]);
  }
  return 3;
}

/// One field of the wrench F, T of all contacts about their centre P, the mean of their points weighted by |f|; world axes.
int ForceOutputs::tell_net(const std::vector<SeenContact>& seen, std::uint32_t field, Scalar* out) const {
  double F[3] = {0, 0, 0};
  double P[3] = {0, 0, 0};
  double weight = 0;
  for (const SeenContact& c : seen) {
    add3(F, c.f, F);
    axpy3(c.size, c.p, P);
    weight += c.size;
  }
  for (double& x : P)
    x = weight > 0 ? x / weight : 0;

  switch (field) {
    case ContactSelection::found: out[0].value = double(seen.size()); return 1;
    case ContactSelection::distance: return 1;  // they have none together
    case ContactSelection::normal: out[0].value = 1; return 3;
    case ContactSelection::tangent: out[1].value = 1; return 3;
    default: break;
  }
  if (weight == 0) return 3;

  for (int i = 0; i < 3; ++i) {
    // T = sum of (p - P) x f + m; what it or the number itself has of P.
    double by_centre[3] = {0, 0, 0};
    if (field == ContactSelection::position) by_centre[i] = 1;
    if (field == ContactSelection::torque) cross3(unit_axes[i], F, by_centre);
    if (field == ContactSelection::position) out[i].value = P[i];

    for (const SeenContact& c : seen) {
      ContactGradient g;
      double arm[3];
      double turned[3];
      sub3(c.p, P, arm);
      if (field == ContactSelection::force) {
        out[i].value += c.f[i];
        g.f[i] = 1;
      }
      if (field == ContactSelection::torque) {
        cross3(unit_axes[i], arm, g.f);
        cross3(c.f, unit_axes[i], g.p);
        cross3(arm, c.f, turned);
        out[i].value += turned[i] + c.m[i];
        g.m[i] = 1;
      }
      if (c.size > 0) axpy3(dot3(by_centre, arm) / weight / c.size, c.f, g.f);
      axpy3(c.size / weight, by_centre, g.p);
      follow_contact(c, g, out[i]);
    }
  }
  return 3;
}

/// Slot by slot, field by field; slots without a contact are zero.
void ForceOutputs::add_contact_sensor(const Sensor& sensor) {
  const ContactSelection& of = *sensor.contacts;
  std::vector<SeenContact> seen;
  find_contacts(sensor, seen);
  if (seen.empty()) return;

  const bool net = of.reduction == ContactReduction::net;
  const int count = net ? 1 : std::min(of.num, int(seen.size()));
  Scalar* out = scalars_.data();
  for (int k = 0; k < count; ++k)
    for (std::uint32_t field = ContactSelection::found; field <= ContactSelection::tangent; field *= 2) {
      if (!(of.fields & field)) continue;
      out += net ? tell_net(seen, field, out) : tell_contact(seen[k], field, int(seen.size()), out);
    }
}

}  // namespace coulomb
