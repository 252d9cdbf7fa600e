// q (+) w: inverse, Jacobians by central differences (small angles included), refusals.
#include "check.hpp"
#include "random_model.hpp"

#include <limits>
#include <stdexcept>

using namespace coulomb;
using namespace coulomb::test;

namespace {

void difference_inverts_integrate(const Model& m, Random& random, double scale) {
  const auto q = random_configuration(m, random), w = random.vector(m.nv, scale);
  std::vector<double> next(m.nq), back(m.nv);
  integrate(m, q.data(), w.data(), next.data());
  difference(m, q.data(), next.data(), back.data());
  check_configuration(m, next.data(), "q", 1e-14);
  for (int d = 0; d < m.nv; ++d) CHECK_NEAR(back[d], w[d], 1e-13 + 1e-13 * scale);
}

void jacobians_match_differences(const Model& m, Random& random, double scale) {
  const int nv = m.nv;
  const auto q = random_configuration(m, random), w = random.vector(nv, scale);
  std::vector<double> high(m.nq), low(m.nq), moved(m.nq), column(nv);
  const double h = 1e-5;
  for (auto argument : {IntegrateArgument::q, IntegrateArgument::w}) {
    std::vector<double> left(nv * nv), left_t(nv * nv), right(nv * nv), right_t(nv * nv);
    for (int i = 0; i < nv; ++i) left[i * nv + i] = left_t[i * nv + i] = right[i * nv + i] = right_t[i * nv + i] = 1;
    integrate_jacobian_times(m, w.data(), argument, false, left.data(), nv, nv);
    integrate_jacobian_times(m, w.data(), argument, true, left_t.data(), nv, nv);
    times_integrate_jacobian(m, w.data(), argument, false, right.data(), nv, nv);
    times_integrate_jacobian(m, w.data(), argument, true, right_t.data(), nv, nv);
    for (int k = 0; k < nv; ++k) {
      for (int sign : {1, -1}) {
        std::vector<double> step(nv), turn = w;
        step[k] = sign * h;
        if (argument == IntegrateArgument::w) turn[k] += sign * h, step[k] = 0;
        integrate(m, q.data(), step.data(), moved.data());
        integrate(m, moved.data(), turn.data(), (sign > 0 ? high : low).data());
      }
      difference(m, low.data(), high.data(), column.data());
      for (int d = 0; d < nv; ++d) {
        CHECK_NEAR(left[d * nv + k], column[d] / (2 * h), 1e-9);
        CHECK(left[d * nv + k] == right[d * nv + k]);
        CHECK(left_t[k * nv + d] == left[d * nv + k] && right_t[k * nv + d] == left[d * nv + k]);
      }
    }
  }
}

/// The closed forms and the series agree where they meet.
void series_join() {
  Model m;
  Random random(3);
  add_random_body(m, -1, random);
  add_random_body(m, 0, random);
  add_random_joint(m, JointType::ball, random);
  finalize_topology(m);
  for (double t : {0.03, 0.3})
    for (auto argument : {IntegrateArgument::q, IntegrateArgument::w}) {
      double below[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1}, above[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
      const double a[3] = {0.6 * t * (1 - 1e-14), 0.8 * t * (1 - 1e-14), 0},
                   b[3] = {0.6 * t * (1 + 1e-14), 0.8 * t * (1 + 1e-14), 0};
      integrate_jacobian_times(m, a, argument, false, below, 3, 3);
      integrate_jacobian_times(m, b, argument, false, above, 3, 3);
      for (int i = 0; i < 9; ++i) CHECK_NEAR(below[i], above[i], 1e-14);
    }
}

void bad_configurations_are_refused(const Model& m, Random& random) {
  auto q = random_configuration(m, random);
  check_configuration(m, q.data(), "q");
  auto broken = q;
  broken[0] = std::numeric_limits<double>::quiet_NaN();
  bool thrown = false;
  try {
    check_configuration(m, broken.data(), "q0");
  } catch (const std::invalid_argument& error) {
    thrown = std::string(error.what()).find("q0[0]") != std::string::npos;
  }
  CHECK(thrown);
  for (int j = 0; j < m.num_joints; ++j) {
    if (m.joint_type[j] != JointType::free) continue;
    broken = q;
    broken[m.joint_q[j] + 3] += 0.5;
    thrown = false;
    try {
      check_configuration(m, broken.data(), "q");
    } catch (const std::invalid_argument&) {
      thrown = true;
    }
    CHECK(thrown);
    normalize_configuration(m, broken.data());
    check_configuration(m, broken.data(), "q");
  }
}

}  // namespace

int main() {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const Model m = random_model(seed);
    Random random(seed);
    for (double scale : {0.0, 1e-9, 1e-5, 1e-2, 0.1, 1.0, 1.7}) {
      difference_inverts_integrate(m, random, scale);
      jacobians_match_differences(m, random, scale);
    }
    bad_configurations_are_refused(m, random);
  }
  series_join();
  return report();
}
