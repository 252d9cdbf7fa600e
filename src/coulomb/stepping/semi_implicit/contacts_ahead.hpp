// The contacts of a plain step: touching pairs, and gaps that the free velocity would close within the step. Bodies
// that stay in contact along curved surfaces are apart by O(h^2) after every step, h v^2 / 2R times h; a fixed margin
// loses such contacts at high speed. A contact that is still open has the bias phi / h (constraint_rows.hpp): it may
// close within the step and no more.
#pragma once

#include <vector>

namespace coulomb {

/// How far bodies are followed for their contacts, and the travels of the collision workspace reach.
inline constexpr double steps_ahead = 2;

struct CollisionCache;
struct DynamicsWorkspace;
struct Model;
struct StepOptions;
struct StepRecord;
struct StepWorkspace;

/// Fills record.collision from the record's kinematics and free velocity. Within the pairs' margins (Model::pair_margin) contacts are
/// those of detect_contacts; beyond, those that twice the step at the free velocity would close, as with joint limits: other
/// constraints may add to it. What comes fast enough to bounce waits until it touches: there is nothing to bounce from before.
void detect_contacts_ahead(const Model& model, const StepOptions& options, StepWorkspace& workspace,
                           CollisionCache& cache, StepRecord& record);

/// travels: num_bodies x 6, how the bodies' origins move and how the bodies turn within `duration` at the links' twists.
void follow_bodies(const Model& model, double duration, const DynamicsWorkspace& dynamics, const double* link_twist,
                   std::vector<double>& travels);

}  // namespace coulomb
