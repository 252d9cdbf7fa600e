// Costs at one knot: values, and the quadratic model of Gauss and Newton.
//
//   l = 1/2 sum w r^2,   g = sum w r r',   H = sum w r' r'^T      by z = (x, u_before, u); u_before only if a term is of rates
#pragma once

#include <vector>

#include "coulomb/control.hpp"
#include "coulomb/linalg/dense.hpp"
#include "coulomb/parameters/state_outputs.hpp"
#include "coulomb/sensors.hpp"

namespace coulomb {

/// A state and the controls around it; u null at the last knot.
struct Knot {
  int t = 0;
  const double* q = nullptr;
  const double* v = nullptr;
  const double* u = nullptr;
  const double* u_before = nullptr;
};

/// Where z has its parts.
struct KnotLayout {
  int nv = 0;
  int nu = 0;
  bool rates = false;

  int nx() const { return 2 * nv + (rates ? nu : 0); }  ///< of what is carried from knot to knot
  int nz() const { return nx() + nu; }
  int ld() const { return dense::padded(nz()); }
};

class CostSum {
 public:
  CostSum(const Model& model, int horizon, int nu);

  /// Throws std::invalid_argument naming argument, element and value.
  void add(CostTerm term);
  void set_weight(int index, const double* weight);
  void set_reference(int index, const double* reference);
  const std::vector<CostTerm>& terms() const { return terms_; }
  KnotLayout layout() const;

  /// What one thread needs.
  struct Workspace {
    explicit Workspace(const Model& model) : at(model) {}
    StateOutputs at;
    std::vector<double> readings;
    std::vector<double> residual;
    std::vector<double> by_q;
    std::vector<double> by_v;
    std::vector<double> gate_by_q;
    std::vector<double> gate_by_v;
    std::vector<double> rows;  // weighted rows of Jacobians, to be squared together
    std::vector<double> weighted;
  };
  void fit(Workspace& ws) const;

  /// by_term: += the value of each, or null.
  double value(const Knot& knot, Workspace& ws, double* by_term = nullptr) const;
  /// g (nz), H (nz x ld); returns the value.
  double expand(const Knot& knot, Workspace& ws, double* g, double* H) const;
  /// F, whose rows are tangents at x (+) gap, into those of the difference to x.
  void turn_into(const double* gap, const KnotLayout& at, double* F) const;

 private:
  struct Sizes {
    int width;      // of the residual
    int reference;  // of the reference
  };
  Sizes sizes_of(const CostTerm& term, const OutputSet& set) const;
  void check_weight(const std::string& name, const double* weight, int width) const;
  void check_reference(const std::string& name, const CostTerm& term, const double* reference, const OutputSet& set,
                       int size) const;
  bool weighs(int index, int t) const;
  void residual_of_outputs(int index, const Knot& knot, Workspace& ws, bool columns) const;
  double gate_value(int index, Workspace& ws) const;
  double expand_outputs(int index, const Knot& knot, Workspace& ws, int& rows) const;
  double expand_state(int index, const Knot& knot, Workspace& ws, double* g, double* H) const;
  double expand_controls(int index, const Knot& knot, Workspace& ws, double* g, double* H) const;
  double value_of(int index, const Knot& knot, Workspace& ws) const;
  void residual_of_state(int index, const Knot& knot, Workspace& ws) const;
  void residual_of_controls(int index, const Knot& knot, Workspace& ws) const;

  const Model* model_;
  int horizon_;
  int nu_;
  std::vector<CostTerm> terms_;
  std::vector<Sizes> sizes_;
  std::vector<OutputSet> sets_;
  std::vector<OutputSet> gates_;
  std::vector<int> rotations_;  // where the rotation vectors of joints begin in v
  std::vector<char> rotates_;   // 2 nv: does the entry belong to one of them?
  bool rates_ = false;
  int rows_ = 0;      // of all outputs together
  int readings_ = 0;  // the most of one term
  int width_ = 0;
};

}  // namespace coulomb
