// What each stepper answers: which options it fits, where it finds contacts, which forces it tells, what it keeps. And that a step that is
// kept, known by its ends or taken again is the step that was taken.
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "check.hpp"
#include "coulomb/scene.hpp"
#include "coulomb/simulator.hpp"
#include "coulomb/stepping/step_record.hpp"
#include "coulomb/stepping/step_workspace.hpp"
#include "coulomb/stepping/steppers.hpp"

namespace {

using namespace coulomb;

std::shared_ptr<const Model> box_on_ground() {
  Scene scene;
  scene.add_ground({.friction = 0.6});
  ShapeOptions box;
  box.mass = 1.0;
  box.position = {0, 0, 0.101};
  scene.add_box({0.2, 0.2, 0.2}, box);
  return scene.build();
}

SimulatorOptions options_of(const char* stepper, const char* contact, bool split, const char* gradient = "exact") {
  SimulatorOptions o;
  o.timestep = 2e-3;
  o.stepper = stepper;
  o.contact = contact;
  o.continuous_collision = split;
  o.gradient = gradient;
  return o;
}

/// What the stepper of such a simulator is expected to answer.
struct Answers {
  bool springs, splits;
  int states;
  StepPoint contacts, dynamics;
  bool constraint, balance;  ///< forces that are told
  bool keeps;
};

void check_answers(const Model& model, const SimulatorOptions& o, const Answers& a) {
  const Simulator sim(std::make_shared<Model>(model), o);
  const StepOptions& options = sim.resolved_options();
  const Stepper& s = *options.stepper;
  CHECK(s.name() == o.stepper && s.fits(options));
  CHECK(s.has_springs() == a.springs && s.splits_at_impacts() == a.splits && s.num_states() == a.states);
  CHECK(s.contacts_at() == a.contacts && s.dynamics_at() == a.dynamics);
  CHECK(s.untold(StepForce::motion) == nullptr);
  CHECK((s.untold(StepForce::constraint) == nullptr) == a.constraint);
  CHECK((s.untold(StepForce::balance) == nullptr) == a.balance);
  CHECK(s.has_gradient(GradientMode::exact) && s.keeps_steps(options) == a.keeps);
}

void check_all_answers() {
  const auto model = box_on_ground();
  const auto start = StepPoint::start, end = StepPoint::end;
  check_answers(*model, options_of("semi_implicit", "ncp", false), {false, false, 1, start, start, true, true, true});
  check_answers(*model, options_of("semi_implicit", "lcp", false), {false, false, 1, start, start, true, true, true});
  check_answers(*model, options_of("semi_implicit", "ncp", true), {false, true, 1, start, start, false, false, false});
  check_answers(*model, options_of("semi_implicit", "penalty", false), {true, false, 1, end, start, true, false, true});
  check_answers(*model, options_of("bdf1", "auto", false), {true, false, 1, end, end, true, false, true});
  check_answers(*model, options_of("bdf2", "auto", false), {true, false, 2, end, end, true, false, true});

  // Gradients that go back to the memory, or to where contacts were found, need the steps themselves.
  const Answers not_kept{false, false, 1, start, start, true, true, false};
  check_answers(*model, options_of("semi_implicit", "ncp", false, "smoothed_step"), not_kept);
  check_answers(*model, options_of("semi_implicit", "ncp", false, "smoothed_collision"), not_kept);
  CHECK((stepper_names() == std::vector<std::string>{"semi_implicit", "bdf1", "bdf2"}));
  CHECK(stepper_named("bdf3") == nullptr);
}

template <class T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

bool same(const StepCotangent& a, const StepCotangent& b) {
  return same(a.q, b.q) && same(a.v, b.v) && same(a.tau, b.tau) && same(a.previous_q, b.previous_q) &&
         same(a.previous_v, b.previous_v);
}

/// The vjp of a step, and of the same step recalled from what was kept of it (if it was), and of it taken again.
void check_steps_again(const SimulatorOptions& o, int kept_of_20) {
  const auto model = box_on_ground();
  Simulator sim(model, o);
  const StepOptions& options = sim.resolved_options();
  const Stepper& stepper = *options.stepper;
  sim.keep_steps(stepper.keeps_steps(options));

  State state{model->q_neutral, std::vector<double>(std::size_t(model->nv), 0.1)};
  const std::vector<double> ones(std::size_t(model->nv), 1.0);
  StepWorkspace workspace(*model);
  StepRecord again(*model), recalled(*model);
  const auto gradient = stepper.make_gradient(*model, options);
  StepCotangent expected, found;
  int kept = 0;
  for (int t = 0; t < 20; ++t) {
    StepMemory memory = sim.memory();
    sim.step(state);
    const StepRecord& r = sim.record();
    expected = sim.vjp(ones.data(), ones.data());
    const auto take_ends = [&r](StepRecord& to) { to.q = r.q, to.v = r.v, to.q_next = r.q_next, to.v_next = r.v_next; };

    // From bytes alone.
    const std::size_t bytes = stepper.keeps_steps(options) ? stepper.kept_bytes(r) : 0;
    std::vector<double> room(bytes / sizeof(double));
    CHECK(bytes % sizeof(double) == 0);
    if (bytes > 0) {
      ++kept;
      std::byte* to = reinterpret_cast<std::byte*>(room.data());
      stepper.keep(r, to);
      take_ends(recalled);
      stepper.recall(*model, options, to, recalled);
      gradient->prepare(*model, options, recalled, memory);
      gradient->vjp(ones.data(), ones.data(), found);
      CHECK(same(expected, found));
      CHECK(!stepper.recalls_contacts() || recalled.rows.num_rows == r.rows.num_rows);
    }

    // From the ends, or once more.
    take_ends(again);
    CHECK(stepper.step_again(*model, options, workspace, memory, nullptr, again));
    CHECK(same(again.q_next, r.q_next) && same(again.v_next, r.v_next));
    CHECK(same(memory.previous_q, sim.memory().previous_q) && same(memory.last_v, sim.memory().last_v));
    gradient->prepare(*model, options, again, memory);
    gradient->vjp(ones.data(), ones.data(), found);
    CHECK(same(expected, found));
  }
  CHECK(kept == kept_of_20);
}

}  // namespace

int main() {
  check_all_answers();
  check_steps_again(options_of("semi_implicit", "ncp", false), 20);
  check_steps_again(options_of("semi_implicit", "ncp", false, "complementarity_aware"), 20);
  check_steps_again(options_of("semi_implicit", "ncp", true), 0);
  check_steps_again(options_of("semi_implicit", "penalty", false), 20);
  check_steps_again(options_of("bdf1", "auto", false), 20);
  check_steps_again(options_of("bdf2", "auto", false), 19);  // the first step has two stages
  return test::report();
}
