// Everything that users of the library need: #include <coulomb/coulomb.hpp>.
#pragma once

#include "coulomb/batch.hpp"            // BatchSimulator: many environments on threads; their rollouts
#include "coulomb/configuration.hpp"    // neutral, integrate, difference
#include "coulomb/contact_problem.hpp"  // ContactProblem: the friction problem by itself
#include "coulomb/control.hpp"          // TrajectorySolver: best trajectories by a cost, receding horizons
#include "coulomb/derivatives.hpp"      // what a step gives of its derivatives
#include "coulomb/dynamics.hpp"         // mass_matrix, inverse_dynamics, placements, energy of one state
#include "coulomb/lcp.hpp"              // solve_lcp: the boxed linear complementarity problem by itself
#include "coulomb/model.hpp"            // Model; save_models, load_models
#include "coulomb/outputs.hpp"          // frames, sensors, forces, contact points of a state or a step
#include "coulomb/parameters.hpp"       // named parameters: list, change, differentiate by
#include "coulomb/rollout.hpp"          // rollout: many steps in a row; their vjp, jvp, jacobian, outputs
#include "coulomb/scene.hpp"            // Scene: builds a Model
#include "coulomb/simulator.hpp"        // Simulator: steps and their derivatives
#include "coulomb/version.hpp"
