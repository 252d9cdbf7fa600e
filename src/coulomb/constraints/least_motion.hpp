// The motion of least energy that corrects one-sided rows (docs/theory.md (K8)): contacts, which may open faster than their errors
// demand. Damped as (K2),
//
//   minimise   x . (G + eps S) x / 2 - x . beta   over   x <= 0,
//
// by projected Gauss-Seidel sweeps in velocities. Rows with x < 0 are its support; the others follow by themselves.
#pragma once

#include <cstddef>
#include <vector>

namespace coulomb {

struct Island;

/// A row of the bound.
struct CorrectedRow {
  int block = 0;  ///< of the island
  int row = 0;    ///< of the island's problem
  int row_of_block = 0;
  bool holds = false;  ///< of an equality, else of a limit or a contact
  double scale = 0;    ///< S
  double weight = 0;   ///< W
  bool idle = false;   ///< one-sided, and the motion of the others corrects it: x = 0
  int tree = -1;       ///< of the island, whose rows have one eps; -1: that of the island
  double damping = 0;  ///< eps
};

class LeastMotion {
 public:
  /// From x = 0. The island and its rows outlive the sweeps.
  void start(const Island& island, const std::vector<CorrectedRow>& rows, const std::vector<double>& beta);

  /// One sweep at this eps, over W in S; the energy of its changes.
  double sweep(double eps);

  /// 2 x . beta - x . (G + eps S) x at the eps of the last sweep: less than the work of the solution, and equal to it there.
  double work() const;

  /// beta - (G + eps S) x of a row; not negative off the support.
  double slack(int k) const;

  const std::vector<double>& x() const { return x_; }
  std::size_t bytes() const { return (x_.size() + motion_.size() + diagonal_.size()) * sizeof(double); }

 private:
  double speed(int k) const;  // (G x)_k
  void push(int k, double change);

  const Island* island_ = nullptr;
  const std::vector<CorrectedRow>* rows_ = nullptr;
  const std::vector<double>* beta_ = nullptr;
  std::vector<double> x_;
  std::vector<double> motion_;    // Y^T x
  std::vector<double> diagonal_;  // of G
  double eps_ = 0;
};

}  // namespace coulomb
