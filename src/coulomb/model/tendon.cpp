#include "coulomb/model/tendon.hpp"

#include <algorithm>

namespace coulomb {

bool dof_moves_body(const Model& model, int dof, int body) {
  const int last = model.body_last_dof[body];
  if (last < 0 || model.dof_depth[dof] > model.dof_depth[last]) return false;
  return model.dof_path[model.dof_row[last] + model.dof_depth[dof]] == dof;
}

int tendon_of_subtree(const Model& model, int first, int end) {
  for (std::size_t t = 0; t < model.tendons.size(); ++t) {
    bool is_part = false;
    for_each_piece(model.tendons[t], [&](const TendonPiece& piece) {
      const auto inside = [&](const TendonPoint* point) { return point->body >= first && point->body < end; };
      const TendonPoint* around = piece.around ? piece.around : piece.a;
      const int count = inside(piece.a) + inside(piece.b) + inside(around);
      is_part = is_part || count == 1 || count == 2;
    });
    if (is_part) return int(t);
  }
  return -1;
}

void find_tendon_dofs(Model& model) {
  for (Tendon& tendon : model.tendons) {
    tendon.dofs.clear();
    for (int joint : tendon.joints)
      tendon.dofs.push_back(model.joint_v[joint]);
    if (!is_spatial(tendon)) continue;

    // What moves all of a piece changes no length.
    for_each_piece(tendon, [&](const TendonPiece& piece) {
      const int bodies[3] = {piece.a->body, piece.b->body, piece.around ? piece.around->body : piece.a->body};
      for (int d = 0; d < model.nv; ++d) {
        int moved = 0;
        for (int body : bodies)
          moved += dof_moves_body(model, d, body);
        if (moved == 1 || moved == 2) tendon.dofs.push_back(d);
      }
    });
    std::sort(tendon.dofs.begin(), tendon.dofs.end());
    tendon.dofs.erase(std::unique(tendon.dofs.begin(), tendon.dofs.end()), tendon.dofs.end());
  }
}

double sum_of_joints_weight(const Model& model, const Tendon& tendon) {
  double sum = 0;
  for (std::size_t i = 0; i < tendon.joints.size(); ++i)
    sum += tendon.coefficients[i] * tendon.coefficients[i] * model.dof_weight[model.joint_v[tendon.joints[i]]];
  return sum;
}

}  // namespace coulomb
