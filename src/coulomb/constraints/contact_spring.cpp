#include "coulomb/constraints/contact_spring.hpp"

#include <cmath>

#include "coulomb/model.hpp"

namespace coulomb {
namespace {

/// h k + d: force per closing speed, of a contact that is closed.
double impedance(const ContactSpring& spring, double timestep) { return timestep * spring.stiffness + spring.dashpot; }

}  // namespace

std::optional<ContactSpring> contact_spring(const PairPenalty& pair) {
  if (!pair.stiffness) return std::nullopt;
  return ContactSpring{pair.scale * *pair.stiffness, pair.scale * pair.dashpot};
}

SpringRow spring_row(const ContactSpring& spring, double timestep, double phi) {
  // Closed: the spring pushes by its depth; open: nothing acts before the gap has closed.
  const double z = impedance(spring, timestep);
  const double closed = spring.stiffness / z;
  const double open = 1 / timestep;
  SpringRow row;
  row.compliance = 1 / (timestep * z);
  row.bias.value = (phi <= 0 ? closed : open) * phi;

  // The two slopes are one without a dashpot; where they meet that of the closed contact counts.
  row.bias.slope = phi <= corner_width ? closed : open;
  row.bias.corner = spring.dashpot > 0 && std::abs(phi) <= corner_width;
  return row;
}

double contact_compliance(const Model& model, int pair, double timestep) {
  const auto spring = contact_spring(model.pair_penalty[pair]);
  return spring ? spring_row(*spring, timestep, 0).compliance : model.pair_compliance[pair];
}

double spring_side(const ContactSpring& spring, double timestep, double phi, double impulse,
                   const SpringChange& change) {
  const double k = spring.stiffness;
  const double d = spring.dashpot;
  const double h = timestep;
  const double z = impedance(spring, h);

  // dR = -R^2 d(1/R), 1/R = h^2 k + h d
  const double dinverse = h * h * change.stiffness + h * change.dashpot + (2 * h * k + d) * change.timestep;
  const double dcompliance = -dinverse / (h * h * z * z);

  // beta = k phi / z closed, phi / h open.
  const double closed = d * change.stiffness - k * change.dashpot - k * k * change.timestep;
  const double dbias = phi <= 0 ? closed / (z * z) * phi : -change.timestep / (h * h) * phi;
  return dcompliance * impulse + dbias;
}

}  // namespace coulomb
