#include "coulomb/stepping/semi_implicit/kept_step.hpp"

#include <cstring>
#include <type_traits>
#include <vector>

#include "coulomb/stepping/gradients/gradient_options.hpp"
#include "coulomb/stepping/step_options.hpp"
#include "coulomb/stepping/step_record.hpp"
#include "coulomb/stepping/steppers.hpp"

namespace coulomb {
namespace {

/// Lists lie behind one another, each from a multiple of eight bytes on.
constexpr std::size_t aligned(std::size_t bytes) { return (bytes + 7) / 8 * 8; }

/// How many bytes a step needs.
class Measuring {
 public:
  template <class T>
  void value(const T&) {
    bytes += aligned(sizeof(T));
  }
  template <class T>
  void first(const std::vector<T>&, std::size_t count) {
    bytes += aligned(count * sizeof(T));
  }
  std::size_t bytes = 0;
};

/// Into memory of that size.
class Writing {
 public:
  explicit Writing(std::byte* to) : to_(to) {}
  template <class T>
  void value(const T& x) {
    copy(&x, 1);
  }
  template <class T>
  void first(const std::vector<T>& list, std::size_t count) {
    copy(list.data(), count);
  }

 private:
  template <class T>
  void copy(const T* x, std::size_t count) {
    static_assert(std::is_trivially_copyable_v<T>);
    if (count > 0) std::memcpy(to_, x, count * sizeof(T));
    to_ += aligned(count * sizeof(T));
  }
  std::byte* to_;
};

/// And out of it again.
class Reading {
 public:
  explicit Reading(const std::byte* from) : from_(from) {}
  template <class T>
  void value(T& x) {
    std::memcpy(&x, from_, sizeof(T));
    from_ += aligned(sizeof(T));
  }
  /// Lists that are longer keep their length.
  template <class T>
  void first(std::vector<T>& list, std::size_t count) {
    if (list.size() < count) list.resize(count);
    if (count > 0) std::memcpy(list.data(), from_, count * sizeof(T));
    from_ += aligned(count * sizeof(T));
  }

 private:
  const std::byte* from_;
};

/// A list that is as long as the step made it.
template <class Pass, class List>
void whole(Pass& pass, List& list) {
  std::size_t count = list.size();
  pass.value(count);
  if constexpr (!std::is_const_v<List>) list.resize(count);
  pass.first(list, count);
}

/// By the rows of all islands.
template <class Pass, class Result>
void solution(Pass& pass, Result& s) {
  whole(pass, s.lambda);
  whole(pass, s.lambda_0);
  whole(pass, s.lambda_1);
  whole(pass, s.c);
  whole(pass, s.modes);
  whole(pass, s.facets);
  whole(pass, s.margin);
  whole(pass, s.contradictory);
}

/// How one was found.
template <class Pass, class Result>
void outcome(Pass& pass, Result& s) {
  pass.value(s.compliance);
  pass.value(s.relaxation);
  pass.value(s.residual);
  pass.value(s.exact_residual);
  pass.value(s.levels);
  pass.value(s.sharper_levels);
  pass.value(s.sharpening);
  pass.value(s.iterations);
  pass.value(s.classes_hit);
  pass.value(s.interior_point);
  pass.value(s.status);
}

/// Everything that is kept, in the one order in which it is measured, written and read.
template <class Pass, class Record>
void visit(Pass& pass, Record& r) {
  whole(pass, r.v_free);
  whole(pass, r.collision.contacts);
  solution(pass, r.solution);
  outcome(pass, r.solution);
  whole(pass, r.islands.order);
  for (int index : r.islands.order)
    outcome(pass, r.islands.pool[index].solution);
}

}  // namespace

std::size_t kept_step_bytes(const StepRecord& record) {
  Measuring pass;
  visit(pass, record);
  return pass.bytes;
}

void keep_step(const StepRecord& record, std::byte* to) {
  Writing pass(to);
  visit(pass, record);
}

/// What is not kept is evaluated again (recall_semi_implicit_step).
void restore_step(const std::byte* kept, StepRecord& record) {
  Reading pass(kept);
  visit(pass, record);
}

/// Implicit steps are known by their ends, split ones have records of their own, averages take other steps.
bool can_recall(const StepOptions& options) {
  const GradientMode mode = options.gradient.mode;
  return !is_implicit(options) && !options.impacts.enabled && mode != GradientMode::smoothed_step &&
         mode != GradientMode::smoothed_collision;
}

}  // namespace coulomb
