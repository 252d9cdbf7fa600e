// How one scalar of a parameter moves frames, contacts and readings at fixed (q, v): the part of their derivative that is not through
// the state. Kinds that move nothing say nothing (ParameterKind::frame_motions, surface_motions).
#pragma once

#include <vector>

namespace coulomb {

struct Contact;
struct ContactMotion;
struct DynamicsWorkspace;
struct Model;
struct OutputRow;
class ParameterSet;

struct FrameMotion {
  int subtree = -1;                   ///< body whose subtree is displaced by xi, its joints held
  int geometry = -1;                  ///< geometry that is displaced by xi in its body
  double xi[6] = {0, 0, 0, 0, 0, 0};  ///< twist, world axes, about the reference point of the body's tree
  int body = -1;                      ///< whose mass, centre of mass (in the body's frame) and inertia about it change
  double dmass = 0;
  double dcom[3] = {0, 0, 0};
  double dinertia[6] = {0, 0, 0, 0, 0, 0};  ///< as Model::body_inertia
  int joint = -1;                           ///< whose limits change
  double dlower = 0;
  double dupper = 0;
  int tendon = -1;  ///< whose limits change, by the same two numbers
};

/// Change of an output's row.
double row_change(const Model& model, const DynamicsWorkspace& dynamics, const OutputRow& row,
                  const FrameMotion& motion);

/// Change of the rows by the scalars of a set: (rows x stride), added.
void add_output_parameters(const Model& model, const DynamicsWorkspace& dynamics, const std::vector<OutputRow>& rows,
                           const ParameterSet& set, double* out, int stride);

/// The motion of a contact for unit twists of its bodies, and how its bodies' or its geometries' displacement moves it.
struct ContactChange {
  double point[3] = {0, 0, 0};
  double normal[3] = {0, 0, 0};
  double depth = 0;
};
/// Columns of a contact by dq (nv, zeroed by the caller) and by the scalars of a set (zeroed).
void add_contact_columns(const Model& model, const DynamicsWorkspace& dynamics, const Contact& contact,
                         const ContactMotion& motion, ContactChange* by_q);
void add_contact_columns(const Model& model, const DynamicsWorkspace& dynamics, const Contact& contact,
                         const ContactMotion& motion, const ParameterSet& set, ContactChange* by_parameters);

}  // namespace coulomb
