#include "coulomb/solvers/lcp/dantzig.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace coulomb {
namespace {

constexpr double at_rest = 1e-12;  // of the scale of w: zero
constexpr double infinity = std::numeric_limits<double>::infinity();

/// Where a walk along d meets a border first.
struct Event {
  double step = infinity;
  int row = -1;
  LcpClass to = LcpClass::clamped;
  // distance left, >= 0 but for rounding
  void consider(double distance, double speed, int i, LcpClass target) {
    if (!(speed > 0)) return;
    const double s = std::max(0.0, distance) / speed;
    if (!(s < step)) return;
    step = s;
    row = i;
    to = target;
  }
};

}  // namespace

/// x_k is at an end or inside: is w_k right for it? Sets its class.
bool Dantzig::admissible(const BoxedLcp& p, int k) {
  const double lower = p.lower(k, x_.data());
  const double upper = p.upper(k, x_.data());
  const double zero = at_rest * scale_.ref[k] * scale_.root[k];

  // At an end w has a sign ...
  if (x_[k] <= lower && (w_[k] >= -zero || lower == upper)) {
    classes_[k] = lower == upper && w_[k] < 0 ? LcpClass::upper : LcpClass::lower;
    return true;
  }
  if (x_[k] >= upper && w_[k] <= zero) {
    classes_[k] = LcpClass::upper;
    return true;
  }

  // ... and inside it vanishes.
  if (std::abs(w_[k]) > zero) return false;
  classes_[k] = LcpClass::clamped;
  return true;
}

/// dx, dw for a unit move of row k with the others' classes kept.
void Dantzig::respond(const BoxedLcp& p, int k, double sign) {
  in_[k] = 0;
  system_.build(p, classes_.data(), in_.data());
  in_[k] = 1;

  // The row itself moves, and friction that follows a normal which is itself on the move.
  std::fill(dx_.begin(), dx_.begin() + p.n, 0.0);
  dx_[k] = sign;
  for (int i = 0; i < p.n; ++i)
    if (in_[i] && i != k && p.normal[i] == k && classes_[i] != LcpClass::clamped)
      dx_[i] = classes_[i] == LcpClass::upper ? p.hi[i] * sign : -p.hi[i] * sign;

  // Clamped rows keep w = 0: they answer.
  for (int j = 0; j < system_.m; ++j) {
    const double* a = p.A.data() + static_cast<long>(system_.rows[j]) * p.ld;
    double sum = 0;
    for (int i = 0; i < p.n; ++i)
      sum += a[i] * dx_[i];
    rhs_[j] = -sum;
  }
  system_.solve_columns(rhs_.data(), 1, 1);
  system_.expand(rhs_.data(), dx_.data());

  for (int i = 0; i < p.n; ++i) {
    const double* a = p.A.data() + static_cast<long>(i) * p.ld;
    dw_[i] = 0;
    for (int j = 0; j < p.n; ++j)
      dw_[i] += a[j] * dx_[j];
  }
}

/// Row i changes its class; the friction of a normal that reaches or leaves zero goes with it.
void Dantzig::enter(const BoxedLcp& p, int i, LcpClass to) {
  classes_[i] = to;
  if (to == LcpClass::lower) {
    x_[i] = p.lower(i, x_.data());
  }
  if (to == LcpClass::upper) {
    x_[i] = p.upper(i, x_.data());
  }
  if (to == LcpClass::clamped) w_[i] = 0;

  for (int f = 0; f < p.n; ++f) {
    if (p.normal[f] != i || !in_[f]) continue;
    const double zero = at_rest * scale_.ref[f] * scale_.root[f];
    if (to != LcpClass::clamped || p.hi[f] == 0) {
      if (classes_[f] == LcpClass::clamped || p.hi[f] == 0) {
        classes_[f] = w_[f] < 0 ? LcpClass::upper : LcpClass::lower;
      }
    } else {
      classes_[f] = std::abs(w_[f]) <= zero ? LcpClass::clamped : w_[f] < 0 ? LcpClass::upper : LcpClass::lower;
    }
  }
}

/// Has this walk had these classes before? Then it goes round in a circle.
bool Dantzig::visited() {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (LcpClass c : classes_)
    hash = (hash ^ static_cast<std::uint64_t>(c)) * 0x100000001b3u;
  if (std::find(seen_.begin(), seen_.end(), hash) != seen_.end()) return true;
  seen_.push_back(hash);
  return false;
}

/// Moves x_k until its w is right; other rows change class where they meet a border. False: it does not get there.
bool Dantzig::drive(const BoxedLcp& p, int k, int max_pivots) {
  in_[k] = 1;
  seen_.clear();
  if (!p.is_friction(k)) {
    x_[k] = std::clamp(0.0, p.lo[k], p.hi[k]);
  }
  p.multiply(x_.data(), w_.data());

  while (!admissible(p, k)) {
    if (++pivots > max_pivots || visited()) return false;

    // The ray that takes w_k towards zero.
    const double sign = w_[k] < 0 ? 1.0 : -1.0;
    respond(p, k, sign);

    // The first border on it.
    Event event;
    event.consider(std::abs(w_[k]), sign * dw_[k], k, LcpClass::clamped);
    for (int i = 0; i < p.n; ++i) {
      if (!in_[i]) continue;
      const bool friction = p.is_friction(i);
      const double xj = friction ? x_[p.normal[i]] : 0;
      const double dxj = friction ? dx_[p.normal[i]] : 0;
      if (i == k || classes_[i] == LcpClass::clamped) {
        if (friction) {
          event.consider(p.hi[i] * xj - x_[i], dx_[i] - p.hi[i] * dxj, i, LcpClass::upper);
          event.consider(p.hi[i] * xj + x_[i], -dx_[i] - p.hi[i] * dxj, i, LcpClass::lower);
        } else {
          event.consider(p.hi[i] - x_[i], dx_[i], i, LcpClass::upper);
          event.consider(x_[i] - p.lo[i], -dx_[i], i, LcpClass::lower);
        }
      } else if (friction ? xj > 0 : p.lo[i] < p.hi[i]) {
        const double towards = classes_[i] == LcpClass::lower ? 1.0 : -1.0;
        event.consider(towards * w_[i], -towards * dw_[i], i, LcpClass::clamped);
      }
    }

    // None: the problem may have no solution.
    if (!(event.step < infinity)) {
      ray = true;
      direction.assign(dx_.begin(), dx_.begin() + p.n);
      return false;
    }

    for (int i = 0; i < p.n; ++i) {
      x_[i] += event.step * dx_[i];
      w_[i] += event.step * dw_[i];
    }
    enter(p, event.row, event.to);
    if (event.row == k) return true;
  }
  return true;
}

bool Dantzig::solve(const BoxedLcp& p, int max_pivots, std::vector<double>& x, std::vector<LcpClass>& classes) {
  const auto n = static_cast<std::size_t>(p.n);
  for (auto* v : {&x_, &w_, &dx_, &dw_, &rhs_})
    v->assign(n + 8, 0.0);
  classes_.assign(n, LcpClass::lower);
  in_.assign(n, 0);
  scale_.assign(p);
  pivots = 0;
  ray = false;

  // Rows without bounds first, friction last: it needs its normal.
  bool solved = true;
  for (int stage = 0; stage < 3 && solved; ++stage)
    for (int i = 0; i < p.n && solved; ++i) {
      const bool free = !p.is_friction(i) && p.lo[i] == -infinity && p.hi[i] == infinity;
      if (stage == (free ? 0 : p.is_friction(i) ? 2 : 1)) {
        solved = drive(p, i, max_pivots);
      }
    }

  x.assign(x_.begin(), x_.begin() + p.n);
  classes = classes_;
  return solved;
}

}  // namespace coulomb
