// Readings that look at the surfaces of geometries: rangefinders, distances. As dynamics/outputs.hpp, which knows no shapes; with the rows'
// part by sizes and vertices (OutputRow::surfaces).
#pragma once

#include <vector>

#include "coulomb/collision/rays/ray_cast.hpp"
#include "coulomb/dynamics/outputs.hpp"
#include "coulomb/sensors.hpp"

namespace coulomb {

struct DynamicsWorkspace;
struct Model;

/// Does a sensor of this type look at surfaces?
bool is_of_shapes(SensorType type);

/// After kinematics.
void read_shape_output(const Model& model, const DynamicsWorkspace& ws, const Sensor& sensor, double* reading);
/// sensor_tangent_size rows.
void linearize_shape_output(const Model& model, const DynamicsWorkspace& ws, const Sensor& sensor,
                            std::vector<OutputRow>& rows);

/// The first geometry that the ray meets before `reach`, but for those of one body (-1: none). After kinematics.
SurfaceHit cast_ray(const Model& model, const DynamicsWorkspace& ws, const Ray& ray, double reach, int excluded_body);

}  // namespace coulomb
