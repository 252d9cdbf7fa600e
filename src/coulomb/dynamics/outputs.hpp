// Readings of frames, joints and centres of mass at a state, and how they change when bodies move. A body X that is displaced by the
// twist xi (world axes, about its tree's reference point) and whose own twist V_X changes by dV changes a reading by
//
//   dy = sum over terms (G . xi_X + H . dV_X) + entries of dq and dv
//
//   dq_k: xi = J_k, dV = J_k x V_X + psi_dot_k for the bodies that dof k moves;    dv_k: dV = J_k
//
// Parameters that displace frames use the same terms (parameters/frame_motion.hpp). Orientations change by a rotation vector
// in the frame's own axes, as configurations do.
#pragma once

#include <array>
#include <utility>
#include <vector>

#include "coulomb/sensors.hpp"

namespace coulomb {

struct DynamicsWorkspace;
struct Model;

/// One row (scalar of the tangent) of an output's derivative.
struct OutputRow {
  struct Term {
    int body;
    int geometry;  ///< whose placement the frame follows, or -1
    bool at_com;
    double G[6];
    double H[6];
    double mass_slope = 0;                         ///< of the reading by the mass of that body
    double inertia_slope[6] = {0, 0, 0, 0, 0, 0};  ///< by its body_inertia
  };
  struct Entry {
    int dof;
    double value;
  };
  std::vector<Term> terms;
  std::vector<Entry> dq;
  std::vector<Entry> dv;
  /// A surface that is looked at: by the sizes of its geometry, or by some of its vertices, in its frame.
  struct Surface {
    int geometry;
    double by_size[3];
    std::vector<std::pair<int, std::array<double, 3>>> by_vertex;
  };
  std::vector<Surface> surfaces;
  /// A parameter that is in the reading itself: its kind, its element and which of its numbers.
  struct Scalar {
    const char* kind;
    int index;
    int number;
    double slope;
  };
  std::vector<Scalar> scalars;
  int tendon = -1;  ///< as joint
  int joint = -1;   ///< whose limit moves the reading by these two numbers
  double dlower = 0;
  double dupper = 0;
};

/// Pose and velocity of a frame, world axes.
struct FrameState {
  double position[3];
  double rotation[9];
  double quaternion[4];
  double velocity[3];
  double spin[3];
};
/// After kinematics and velocities.
FrameState frame_state(const Model& model, const DynamicsWorkspace& ws, const Frame& frame);

/// sensor_size numbers. The sensor is not a force. After kinematics and velocities at (q, v).
void read_output(const Model& model, const DynamicsWorkspace& ws, const double* q, const double* v,
                 const Sensor& sensor, double* reading);

/// sensor_tangent_size rows. The same conditions.
void linearize_output(const Model& model, const DynamicsWorkspace& ws, const double* q, const double* v,
                      const Sensor& sensor, std::vector<OutputRow>& rows);

/// What a reading changes by with a frame: p . (motion of its origin) + phi . (turn) + v . (change of its velocity) + w . (of its spin).
struct FrameCovector {
  double p[3] = {0, 0, 0};
  double phi[3] = {0, 0, 0};
  double v[3] = {0, 0, 0};
  double w[3] = {0, 0, 0};
};
/// Appends it to the row as a term. at: frame_state of that frame.
void add_frame_term(const Model& model, const DynamicsWorkspace& ws, const Frame& frame, const FrameState& at,
                    const FrameCovector& a, OutputRow& row);

/// dq, dv (nv each): += scale times the row's derivative by q and by v; either may be null.
void add_output_row(const Model& model, const DynamicsWorkspace& ws, const OutputRow& row, double scale, double* dq,
                    double* dv);

/// Mass of a subtree, its centre of mass and that point's velocity; a subtree without mass: its root's.
struct SubtreeState {
  double mass = 0;
  double com[3] = {0, 0, 0};
  double velocity[3] = {0, 0, 0};
};
SubtreeState subtree_state(const Model& model, const DynamicsWorkspace& ws, int root);

/// The clamp of a reading: a force or of both signs.
double clamp_reading(const Sensor& sensor, double value);
bool is_clamped(const Sensor& sensor, double value);

}  // namespace coulomb
