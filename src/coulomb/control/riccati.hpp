// The backward pass: feedback that is best for the quadratic model of the cost on linear dynamics with gaps, within limits of the controls.
//
//   dx_(t+1) = A dx + B du + f,      l = 1/2 dz^T H dz + g^T dz,      dz = (dx, du)
//   du = k + K dx                    [Tassa2014], gaps f as in [Mastalli2020]
#pragma once

#include <vector>

#include "coulomb/control/boxed_newton.hpp"
#include "coulomb/control/costs.hpp"

namespace coulomb {

/// The models of all knots. Rows of matrices have the stride ld of the layout.
struct KnotModels {
  void resize(const KnotLayout& layout, int horizon);

  KnotLayout layout;
  int horizon = 0;
  std::vector<double> F;    ///< N x nx x ld: [A B]
  std::vector<double> gap;  ///< N x nx: of the state after knot t
  std::vector<double> g;    ///< (N + 1) x ld
  std::vector<double> H;    ///< (N + 1) x nz x ld

  double* F_of(int t) { return F.data() + std::size_t(t) * layout.nx() * layout.ld(); }
  double* gap_of(int t) { return gap.data() + std::size_t(t) * layout.nx(); }
  double* g_of(int t) { return g.data() + std::size_t(t) * layout.ld(); }
  double* H_of(int t) { return H.data() + std::size_t(t) * layout.nz() * layout.ld(); }
  const double* F_of(int t) const { return const_cast<KnotModels*>(this)->F_of(t); }
  const double* gap_of(int t) const { return const_cast<KnotModels*>(this)->gap_of(t); }
  const double* g_of(int t) const { return const_cast<KnotModels*>(this)->g_of(t); }
  const double* H_of(int t) const { return const_cast<KnotModels*>(this)->H_of(t); }
};

/// du = k + K dx of all knots.
struct Feedback {
  void resize(const KnotLayout& layout, int horizon);
  double* k_of(int t) { return k.data() + std::size_t(t) * nu; }
  double* K_of(int t) { return K.data() + std::size_t(t) * nu * ld; }
  const double* k_of(int t) const { return k.data() + std::size_t(t) * nu; }
  const double* K_of(int t) const { return K.data() + std::size_t(t) * nu * ld; }

  int nu = 0;
  int ld = 0;
  std::vector<double> k;  ///< N x nu
  std::vector<double> K;  ///< N x nu x ld
};

class Riccati {
 public:
  void resize(const KnotLayout& layout);

  /// u: N x nu, to which the limits (nu each) belong. False: some Q_uu is not positive definite.
  bool backward(const KnotModels& models, double regularization, const double* u, const double* lower,
                const double* upper, Feedback& feedback);

  /// The feedback alone, along the controls as they are: what is at a limit that the cost pushes it through has none. Gaps do not matter.
  /// False: some Q_uu is not positive definite.
  bool gains(const KnotModels& models, double regularization, const double* u, const double* lower, const double* upper,
             Feedback& feedback);

  /// What a whole step changes the model of the cost by: slope + curvature / 2.
  struct Promise {
    double slope = 0;
    double curvature = 0;
    double longest = 0;  ///< largest entry of du
  };
  Promise promise(const KnotModels& models, const Feedback& feedback);

  /// du, N x nu: the derivative of the cost by the controls, where there are no gaps.
  void gradient(const KnotModels& models, double* du);

 private:
  void begin(const KnotModels& models);
  void look_ahead(const KnotModels& models, int t, bool gaps);
  void regularize(const KnotLayout& at, double regularization);
  void value_by_state(const KnotLayout& at, const double* K);
  static bool is_finite(const Feedback& feedback, const std::vector<double>& value, int nx);

  std::vector<double> V_;
  std::vector<double> v_;
  std::vector<double> W_;
  std::vector<double> Q_;
  std::vector<double> q_;
  std::vector<double> T_;
  std::vector<double> ahead_;
  std::vector<double> Q_uu_;
  std::vector<double> lower_;
  std::vector<double> upper_;
  std::vector<double> dz_;
  std::vector<double> dx_;
  std::vector<char> held_;
  BoxedNewton boxed_;
};

}  // namespace coulomb
