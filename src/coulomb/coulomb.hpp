// Everything that users of the library need: #include <coulomb/coulomb.hpp>.
#pragma once

#include "coulomb/dynamics/dynamics_queries.hpp"      // mass_matrix, inverse_dynamics, placements, energy of one state
#include "coulomb/dynamics/joint_forces.hpp"          // passive_forces, actuator_forces of one state
#include "coulomb/model/configuration.hpp"            // neutral, integrate, difference
#include "coulomb/model/model.hpp"                    // Model
#include "coulomb/model/scene/scene.hpp"              // Scene: builds a Model
#include "coulomb/rollout/batch/batch_rollout.hpp"    // BatchSimulator: many environments on threads; their rollouts
#include "coulomb/rollout/rollout.hpp"                // rollout: many steps in a row
#include "coulomb/rollout/rollout_derivatives.hpp"    // their vjp, jvp, jacobian
#include "coulomb/rollout/rollout_outputs.hpp"        // outputs along them: frames, sensors
#include "coulomb/solvers/contact_problem.hpp"        // ContactProblem: the friction problem by itself
#include "coulomb/stepping/outputs/step_outputs.hpp"  // outputs of a step, derivatives of contact points
#include "coulomb/stepping/simulator.hpp"             // Simulator: steps and their derivatives
#include "coulomb/version.hpp"
