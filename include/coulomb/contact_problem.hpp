// ContactProblem: the friction problem by itself, for users who bring their own G and g (three rows a contact: t1, t2, normal; up to six
// with torsional and rolling friction).
//
//   c = (G + diag R) lambda + g,   K_mu contains lambda, orthogonal to c + (0, 0, mu ||c_T||) in the dual cone   (docs/theory.md (C3))
#pragma once

#include <memory>
#include <vector>

#include "coulomb/solver.hpp"

namespace coulomb {

struct ContactSolution {
  std::vector<double> impulse, velocity;  ///< n
  std::vector<Mode> modes;                ///< per contact: separating, sticking, sliding
  std::vector<double> margin;  ///< per contact; below 1e-8 a tie (docs/conventions.md says which side is taken)
  double residual = 0;         ///< of the regularised problem
  double exact_residual = 0;   ///< of the problem as given
  double relaxation = 0;
  int iterations = 0;
  SolveStatus status = SolveStatus::solved;
};

struct ContactDerivatives {
  int n = 0, num_contacts = 0;
  std::vector<double> dlambda_dg;   ///< n x n, row major; also K of dlambda = K (dG lambda)
  std::vector<double> dlambda_dmu;  ///< n x num_contacts, row major
  bool deficient = false;           ///< impulses are not unique: the derivative of their shares by W
};

class ContactProblem {
 public:
  /// G: n x n row major, symmetric positive semi-definite; g: n; mu: one per contact; R: empty or n, compliance >= 0.
  /// rows: rows of each contact, 3 to 6 (t1, t2, normal, further tangents, each in units in which mu is its coefficient); empty: 3 each.
  /// Throws std::invalid_argument naming argument, element and value.
  ContactProblem(const std::vector<double>& G, const std::vector<double>& g, const std::vector<double>& mu,
                 const std::vector<double>& R = {}, const std::vector<int>& rows = {});
  ~ContactProblem();
  ContactProblem(const ContactProblem& other);
  ContactProblem(ContactProblem&& other) noexcept;
  ContactProblem& operator=(const ContactProblem& other);
  ContactProblem& operator=(ContactProblem&& other) noexcept;

  /// warm: empty, or n impulses to start from.
  const ContactSolution& solve(SolverMethod method = SolverMethod::automatic, double tolerance = 1e-10,
                               int max_iterations = 3000, const std::vector<double>& warm = {});
  const ContactSolution& solution() const;
  /// Derivatives of the last solve (solves first if there was none). Throws std::logic_error where they exceed double precision.
  ContactDerivatives derivatives();
  /// dlambda = K (dG lambda) for a symmetric change dG (n x n) of G.
  std::vector<double> dlambda_along_dG(const std::vector<double>& dG);

  int size() const;
  int num_contacts() const;

 private:
  void linearize();

  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace coulomb
