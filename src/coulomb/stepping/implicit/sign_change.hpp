// Where a function changes its sign: regula falsi by the Illinois rule.
#pragma once

namespace coulomb {

/// Fractions of a step between which its power changes sign, from below zero.
class SignChange {
 public:
  SignChange() = default;
  SignChange(double at_lower, double at_upper) : at_lower_(at_lower), at_upper_(at_upper) {}

  double next() const { return lower_ + (upper_ - lower_) * at_lower_ / (at_lower_ - at_upper_); }

  /// An end that stays twice counts half.
  void add(double fraction, double value) {
    const bool above = value > 0;
    if (above == last_above_) (above ? at_lower_ : at_upper_) *= 0.5;
    (above ? upper_ : lower_) = fraction;
    (above ? at_upper_ : at_lower_) = value;
    last_above_ = above;
  }

 private:
  double lower_ = 0, upper_ = 1, at_lower_ = -1, at_upper_ = 1;
  bool last_above_ = true;  // as at the end of the step
};

}  // namespace coulomb
