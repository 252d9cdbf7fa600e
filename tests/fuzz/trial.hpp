// What must hold of every model that is accepted, whatever it is: steps and derivatives are finite or refused, and the same twice.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "bytes.hpp"
#include "coulomb/simulator.hpp"

namespace coulomb::fuzz {

/// Ends the process, which is what a fuzzer looks for.
inline void promise(bool kept, const char* what) {
  if (kept) return;
  std::fprintf(stderr, "promise broken: %s\n", what);
  std::abort();
}

inline bool finite(const std::vector<double>& x) {
  return std::all_of(x.begin(), x.end(), [](double e) { return std::isfinite(e); });
}

/// Calls that may refuse what they are given, by exceptions that say so. False: refused.
template <class Call>
bool accepted(Call&& call) {
  try {
    call();
    return true;
  } catch (const std::invalid_argument& error) {
    promise(std::string(error.what()).size() > 5, "a refusal says why");
  } catch (const std::logic_error& error) {  // derivatives that do not exist
    promise(std::string(error.what()).size() > 5, "a refusal says why");
  }
  return false;
}

inline SimulatorOptions random_options(Bytes& bytes) {
  SimulatorOptions options;
  options.max_iterations = 300;
  options.newton_iterations = 20;
  const char* contacts[] = {"auto", "auto", "ncp", "lcp", "penalty"};
  const char* steppers[] = {"semi_implicit", "semi_implicit", "semi_implicit", "bdf1", "bdf2"};
  const char* gradients[] = {"exact", "exact", "complementarity_aware", "approximate_bounce", "from_distance"};
  options.contact = contacts[bytes.choice(5)];
  options.stepper = steppers[bytes.choice(5)];
  options.gradient = gradients[bytes.choice(5)];
  options.timestep = bytes.coin() ? 0.0 : bytes.size() / 100;
  options.continuous_collision = bytes.choice(4) == 0;
  options.patches = bytes.choice(4) != 0;
  options.warm_start = bytes.choice(8) != 0;
  options.gyroscopic = bytes.choice(8) ? "implicit" : "explicit";
  return options;
}

/// Some steps from near the neutral state, with derivatives of some of them.
inline void check_steps(const std::shared_ptr<const Model>& model, Bytes& bytes) {
  std::unique_ptr<Simulator> sim, again;
  const auto options = random_options(bytes);
  if (!accepted([&] { sim = std::make_unique<Simulator>(model, options); })) return;
  again = std::make_unique<Simulator>(model, options);

  State state{model->q_neutral, std::vector<double>(static_cast<std::size_t>(model->nv))};
  for (double& q : state.q) {
    if (bytes.choice(4) == 0) q += bytes.number();
  }
  for (double& v : state.v) {
    if (bytes.coin()) v = bytes.number();
  }
  std::vector<double> u(static_cast<std::size_t>(model->nu));
  for (double& e : u) e = bytes.number();

  const int num_steps = 1 + bytes.choice(6);
  for (int k = 0; k < num_steps; ++k) {
    // A step that is accepted is finite and says how it went; another simulator finds the same bits.
    State next, same;
    if (!accepted([&] { sim->step(state, u, next); })) return;
    again->step(state, u, same);
    promise(finite(next.q) && finite(next.v), "states are finite");
    promise(next.q == same.q && next.v == same.v, "the same inputs give the same bits");
    promise(!sim->status().reason.empty(), "a step says how it went");
    promise(std::isfinite(sim->status().residual), "residuals are finite");
    for (const auto& contact : sim->contacts()) {
      for (double e : contact.impulse) promise(std::isfinite(e), "impulses are finite");
    }
    state = next;

    // So are its derivatives.
    if (bytes.coin()) continue;
    const bool differentiable = sim->differentiable();
    const bool found = accepted([&] {
      const auto& d = sim->derivatives();
      promise(finite(d.A_T) && finite(d.B_T) && finite(d.B_tau_T), "derivatives are finite");
    });
    promise(found || !differentiable, "derivatives are there where it was said so");
    if (!found) continue;
    const std::vector<double> ones(static_cast<std::size_t>(model->nv), 1.0);
    const auto cotangent = sim->vjp(ones.data(), ones.data());
    promise(finite(cotangent.q) && finite(cotangent.v) && finite(cotangent.u), "cotangents are finite");
  }
}

}  // namespace coulomb::fuzz
