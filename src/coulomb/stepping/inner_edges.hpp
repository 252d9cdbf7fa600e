// Inner edges. A body is supported along a normal and comes to the edge of another shape, which this normal also
// separates from the body: the next tile of a floor, the next block of a wall. The side of that shape separates the two
// as well, and a contact with it would stop the body.
#pragma once

namespace coulomb {

struct Contact;
struct ContactsToCome;
struct DynamicsWorkspace;
struct Model;
struct Shape;
struct StepRecord;

/// m: how much deeper than in what holds it a body may be in the next shape, and both are still one floor. A higher rise is a step.
inline constexpr double one_floor = 1e-5;

/// Cosine of a flat side's normal and one that it stands for.
inline constexpr double near_normal = 0.99;

/// Is this the contact's own normal: to rounding, or that of a flat side that leans a little against another one? An edge has many.
bool has_normal(const Contact& contact, const double normal[3]);

/// The normal of `held` as it pushes A of another pair against B, of these bodies. Whose body it holds; neither: they share none that moves.
enum class Shared { neither, a, b };
Shared normal_beside(const Model& model, const Contact& held, int body_a, int body_b, double normal[3]);

/// m/s: how fast the contact's shapes part along a normal (from B to A) where `shape`, of A or B, reaches furthest against it. A ball that
/// rolls does not come down on a floor, whatever the point does that is near the floor's edge.
double speed_along(const Model& model, const DynamicsWorkspace& dynamics, const double* link_twist, const Contact& c,
                   const Shape& shape, bool of_a, const double normal[3]);

/// Leaves out of record.collision.contacts, ordered by pair, those at inner edges; `touching`: what is nearer holds. Link twists of the
/// record at v.
void leave_out_inner_edges(const Model& model, double touching, StepRecord& record, ContactsToCome& buffers);

}  // namespace coulomb
