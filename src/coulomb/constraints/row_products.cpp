// The row derivatives applied: dense columns for the full Jacobian, one tree sweep for a vjp.
#include <algorithm>

#include "coulomb/constraints/row_derivatives.hpp"
#include "coulomb/small_math.hpp"

namespace coulomb {
namespace {

void fill_side(const Model& model, const DynamicsWorkspace& dynamics, const BodyRows& b, const RowVelocities& velocities, int body,
               const double G[6][6], const double e[6][6], double* s, int ld) {
  const int last = model.body_last_dof[body];
  if (last < 0) return;
  const int* path = model.dof_path.data() + model.dof_row[last];
  for (int k = 0; k <= model.dof_depth[last]; ++k) {
    const int d = path[k];
    const double *J = dynamics.columns.data() + 8 * d, *rate_plus = velocities.rate_plus + 8 * d;
    for (int i = 0; i < b.size; ++i) s[std::size_t(b.row + i) * ld + d] += dot6(J, G[i]) + dot6(rate_plus, e[i]);
    if (b.restitution != 0) s[std::size_t(b.row + 2) * ld + d] += b.restitution * dot6(velocities.rate + 8 * d, e[2]);
  }
}

void multiply6(const double M[6][6], const double* x, double* out) {
  for (int i = 0; i < 6; ++i) out[i] = dot6(M[i], x);
}

void add_transposed6(const double M[6][6], const double* x, double* out) {
  for (int i = 0; i < 6; ++i)
    for (int j = 0; j < 6; ++j) out[j] += M[i][j] * x[i];
}

// Jacobian columns of a body's path, component by component, so that products run along the path.
constexpr int max_path = 64;
struct PathColumns {
  const int* path = nullptr;
  int length = 0;
  double component[6][max_path];
};

void gather_path(const Model& model, const DynamicsWorkspace& dynamics, int body, PathColumns& out) {
  const int last = model.body_last_dof[body];
  out.length = last < 0 ? 0 : model.dof_depth[last] + 1;
  if (last < 0) return;
  out.path = model.dof_path.data() + model.dof_row[last];
  if (out.length > max_path) return;
  for (int k = 0; k < out.length; ++k)
    for (int i = 0; i < 6; ++i) out.component[i][k] = dynamics.columns[8 * out.path[k] + i];
}

void add_generalised(const DynamicsWorkspace& dynamics, const PathColumns& p, const double* wrench, double* out) {
  if (p.length > max_path) {
    for (int k = 0; k < p.length; ++k) out[p.path[k]] += dot6(dynamics.columns.data() + 8 * p.path[k], wrench);
    return;
  }
  double value[max_path];
  for (int k = 0; k < p.length; ++k)
    value[k] = (wrench[0] * p.component[0][k] + wrench[1] * p.component[1][k]) + (wrench[2] * p.component[2][k] + wrench[3] * p.component[3][k]) +
               (wrench[4] * p.component[4][k] + wrench[5] * p.component[5][k]);
  for (int k = 0; k < p.length; ++k) out[p.path[k]] += value[k];
}

// Columns of one side: every dof of its path moves it and changes the wrenches on both bodies.
void wrench_columns_side(const DynamicsWorkspace& dynamics, const PathColumns& by, const double on_a[6][6], const double on_b[6][6],
                         const PathColumns& a, const PathColumns& b, double* r_T, int ld) {
  for (int k = 0; k < by.length; ++k) {
    double wrench[6];
    const double* J = dynamics.columns.data() + 8 * by.path[k];
    double* out = r_T + std::size_t(by.path[k]) * ld;
    if (a.length > 0) {
      multiply6(on_a, J, wrench);
      add_generalised(dynamics, a, wrench, out);
    }
    if (b.length > 0) {
      multiply6(on_b, J, wrench);
      add_generalised(dynamics, b, wrench, out);
    }
  }
}

void gather(const Model& model, int body, const double G[6][6], const double e[6][6], const BodyRows& b, const double* z,
            double* sum_G, double* sum_e, double* sum_bounce) {
  const int d = model.body_last_dof[body];
  if (d < 0) return;
  for (int i = 0; i < b.size; ++i)
    for (int j = 0; j < 6; ++j) {
      sum_G[8 * d + j] += z[b.row + i] * G[i][j];
      sum_e[8 * d + j] += z[b.row + i] * e[i][j];
    }
  if (b.restitution != 0)
    for (int j = 0; j < 6; ++j) sum_bounce[8 * d + j] += b.restitution * z[b.row + 2] * e[2][j];
}

}  // namespace

void fill_row_columns(const Model& model, const DynamicsWorkspace& dynamics, const ConstraintRows& rows,
                      const RowVelocities& velocities, const double* v_plus, const RowDerivatives& derivatives,
                      const std::vector<unsigned char>& inactive, double* s, int ld) {
  for (std::size_t i = 0; i < rows.body_rows.size(); ++i) {
    const BodyRows& b = rows.body_rows[i];
    if (inactive[b.block]) continue;
    const BodyRowDerivative& D = derivatives.blocks[i];
    fill_side(model, dynamics, b, velocities, b.body_a, D.G_a, D.e_a, s, ld);
    fill_side(model, dynamics, b, velocities, b.body_b, D.G_b, D.e_b, s, ld);
  }
  for (const DofRow& d : rows.dof_rows) {
    if (inactive[d.block]) continue;
    for (int j = 0; j < d.num; ++j) {
      double value = d.dbias_dphi * d.coefficient[j];
      for (int i = 0; i < d.num; ++i) value += d.dcoefficient[i][j] * v_plus[d.dof[i]];
      s[std::size_t(d.row) * ld + d.dof[j]] += value;
    }
  }
}

void add_wrench_columns(const Model& model, const DynamicsWorkspace& dynamics, const ConstraintRows& rows,
                        const RowDerivatives& derivatives, const double* lambda, double* r_T, int ld) {
  for (const PairWrenchDerivative& p : derivatives.wrenches) {
    PathColumns a, b;
    gather_path(model, dynamics, p.body_a, a);
    gather_path(model, dynamics, p.body_b, b);
    wrench_columns_side(dynamics, a, p.aa, p.ba, a, b, r_T, ld);
    wrench_columns_side(dynamics, b, p.ab, p.bb, a, b, r_T, ld);
  }
  for (const DofRow& d : rows.dof_rows)
    for (int j = 0; j < d.num; ++j)
      for (int i = 0; i < d.num; ++i)
        r_T[std::size_t(d.dof[j]) * ld + d.dof[i]] += d.dcoefficient[i][j] * lambda[d.row];
}

void row_derivatives_vjp(const Model& model, const DynamicsWorkspace& dynamics, const ConstraintRows& rows,
                         const RowVelocities& velocities, const double* v_plus, const RowDerivatives& derivatives,
                         const std::vector<unsigned char>& inactive, const double* lambda, const double* z, const double* y,
                         double* scratch, double* out_q) {
  const int nv = model.nv;
  double *sum_G = scratch, *sum_e = scratch + 8 * nv, *sum_bounce = scratch + 16 * nv, *twist_y = scratch + 24 * nv;
  std::fill_n(scratch, 24 * nv, 0.0);
  link_twists(model, dynamics, y, twist_y);
  for (std::size_t i = 0; i < rows.body_rows.size(); ++i) {
    const BodyRows& b = rows.body_rows[i];
    if (inactive[b.block]) continue;
    const BodyRowDerivative& D = derivatives.blocks[i];
    gather(model, b.body_a, D.G_a, D.e_a, b, z, sum_G, sum_e, sum_bounce);
    gather(model, b.body_b, D.G_b, D.e_b, b, z, sum_G, sum_e, sum_bounce);
  }
  for (const PairWrenchDerivative& p : derivatives.wrenches) {
    const double* eta_a = body_link_twist(model, twist_y, p.body_a);
    const double* eta_b = body_link_twist(model, twist_y, p.body_b);
    if (const int d = model.body_last_dof[p.body_a]; d >= 0) {
      add_transposed6(p.aa, eta_a, sum_G + 8 * d);
      add_transposed6(p.ba, eta_b, sum_G + 8 * d);
    }
    if (const int d = model.body_last_dof[p.body_b]; d >= 0) {
      add_transposed6(p.ab, eta_a, sum_G + 8 * d);
      add_transposed6(p.bb, eta_b, sum_G + 8 * d);
    }
  }
  for (int d = nv - 1; d >= 0; --d) {
    out_q[d] += dot6(dynamics.columns.data() + 8 * d, sum_G + 8 * d) + dot6(velocities.rate_plus + 8 * d, sum_e + 8 * d) +
                dot6(velocities.rate + 8 * d, sum_bounce + 8 * d);
    const int parent = model.dof_parent[d];
    if (parent < 0) continue;
    for (int i = 0; i < 6; ++i) {
      sum_G[8 * parent + i] += sum_G[8 * d + i];
      sum_e[8 * parent + i] += sum_e[8 * d + i];
      sum_bounce[8 * parent + i] += sum_bounce[8 * d + i];
    }
  }
  for (const DofRow& d : rows.dof_rows) {
    if (inactive[d.block]) continue;
    for (int j = 0; j < d.num; ++j) {
      out_q[d.dof[j]] += z[d.row] * d.dbias_dphi * d.coefficient[j];
      for (int i = 0; i < d.num; ++i)
        out_q[d.dof[j]] += d.dcoefficient[i][j] * (z[d.row] * v_plus[d.dof[i]] + lambda[d.row] * y[d.dof[i]]);
    }
  }
}

}  // namespace coulomb
