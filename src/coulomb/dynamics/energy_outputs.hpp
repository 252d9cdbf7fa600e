// Energies of a model and angular momenta of subtrees, with their rows (outputs.hpp). After kinematics and velocities at (q, v).
//
//   potential energy   V = -sum m g . c + 1/2 sum k |stretch|^2         of joints and tendons
//   kinetic energy     T = 1/2 v . M v                                  with armatures
//   angular momentum   L = sum I w + m (c - C) x (v - V)                about the centre of mass C of the subtree
#pragma once

#include <vector>

namespace coulomb {

struct DynamicsWorkspace;
struct Model;
struct OutputRow;

double potential_energy(const Model& model, const DynamicsWorkspace& ws, const double* q);
void potential_energy_row(const Model& model, const DynamicsWorkspace& ws, const double* q, OutputRow& row);

double kinetic_energy(const Model& model, const DynamicsWorkspace& ws, const double* q, const double* v);
void kinetic_energy_row(const Model& model, const DynamicsWorkspace& ws, const double* q, const double* v,
                        OutputRow& row);

/// World axes (3), and three rows.
void angular_momentum(const Model& model, const DynamicsWorkspace& ws, int root, double* momentum);
void angular_momentum_rows(const Model& model, const DynamicsWorkspace& ws, int root, std::vector<OutputRow>& rows);

}  // namespace coulomb
