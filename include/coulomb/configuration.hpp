// Configurations as a Lie group: q (+) w, its inverse and its Jacobians, in MuJoCo's conventions. A free joint adds world
// translation and turns its quaternion on the right by exp(body-axis rotation vector); a ball joint the same; others add.
#pragma once

#include "coulomb/model.hpp"

namespace coulomb {

/// q_out (nq) = q_neutral; hinges and slides within their limits, and joints coupled to one that this moves where their equality puts them.
void neutral(const Model& model, double* q_out);
/// q_out = q (+) w; q, q_out of size nq (may alias), w of size nv. Quaternions of q_out are unit.
void integrate(const Model& model, const double* q, const double* w, double* q_out);
/// w_out (nv) with q0 (+) w = q1, rotations the short way round.
void difference(const Model& model, const double* q0, const double* q1, double* w_out);
/// Throws std::invalid_argument naming `argument`, the element and its value when an entry of q is not finite or a quaternion's
/// norm differs from 1 by more than tolerance.
void check_configuration(const Model& model, const double* q, const char* argument, double tolerance = 1e-6);
/// Throws std::invalid_argument naming `argument` (and element and value) when x has another size or an entry that is not finite.
void check_vector(const std::vector<double>& x, int size, const char* argument);
/// Scales the quaternions of q to unit length.
void normalize_configuration(const Model& model, double* q);

/// Which argument of integrate(q, w) a Jacobian belongs to. Both nv x nv Jacobians are block diagonal: identity except on the
/// rotations of free and ball joints, where d/dq = exp(-[w]) and d/dw = the right Jacobian of SO(3) at w.
enum class IntegrateArgument { q, w };

/// a := J a, or J^T a when transposed; a has nv rows of `columns` entries, row stride ld. (A vector: columns = ld = 1.)
void integrate_jacobian_times(const Model& model, const double* w, IntegrateArgument argument, bool transposed,
                              double* a, int ld, int columns);
/// a := a J, or a J^T when transposed; a has `rows` rows of nv entries, row stride ld.
void times_integrate_jacobian(const Model& model, const double* w, IntegrateArgument argument, bool transposed,
                              double* a, int ld, int rows);

/// Block of such a Jacobian at a rotation's own w (3), or its transpose: 3 x 3, row major.
void integrate_rotation_block(const double* w, IntegrateArgument argument, bool transposed, double* block);

/// Unit quaternion of a rotation vector (3), and its right Jacobian (3 x 3): exp(w + dw) = exp(w) exp(J dw).
void rotation_exp(const double* vector, double* quaternion);
void rotation_right_jacobian(const double* vector, double* J);

}  // namespace coulomb
