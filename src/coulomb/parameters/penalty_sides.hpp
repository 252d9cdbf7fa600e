// The right-hand sides of parameters where contacts are forces of penalty contact.
//
// A stepper that evaluates penalty_forces at (q, v) builds a ParameterContext with `penalty` set, rows, contacts, derivatives, modes
// and inactive of the PenaltyForces, lambda = h f, velocities of (q, v) on both sides (v_plus = v) and h its options.timestep. The
// kinds then write wrenches (h f moved) and s of the contact rows, where s = (dc_T, df_N) here; close_penalty_sides turns s into the
// wrenches h J^T df, after which wrenches, dofs and timestep are all there is and rows is empty:
//
//   r = d/dtheta [ h tau - h ID(q, v, a) + h J^T f ]   at fixed q, v, a.
#pragma once

namespace coulomb {

struct BodyRows;
struct ParameterContext;
struct RightHandSide;

/// A contact whose share of the force changes by itself (collision/penalty/contact_share.hpp), the bodies at rest.
void add_share_change(const ParameterContext& context, const BodyRows& b, double change, RightHandSide& out);

/// out[0 .. count): what one kind wrote for its scalars. Call it after every right_hand_sides of such a context.
void close_penalty_sides(const ParameterContext& context, RightHandSide* out, int count);

}  // namespace coulomb
