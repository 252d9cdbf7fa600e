// Spheres against spheres in rows of single precision; half-spaces against spheres one by one.
#include "coulomb/collision/continuous/swept_filter.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/base/simd.hpp"
#include "coulomb/base/small_math.hpp"
#include "coulomb/collision/broad_phase/hit_bytes.hpp"

namespace coulomb {
namespace {

/// Rounded to float; the radius grows by what that can shift the centre.
COULOMB_SIMD void fill_spheres(int n, int stride, const double* __restrict centre, const double* __restrict radius,
                               const double* __restrict reach, float* __restrict out) {
  for (int g = 0; g < n; ++g) {
    const double x = centre[3 * g];
    const double y = centre[3 * g + 1];
    const double z = centre[3 * g + 2];
    out[g] = static_cast<float>(x);
    out[stride + g] = static_cast<float>(y);
    out[2 * stride + g] = static_cast<float>(z);
    const double slack = 4e-7 * (std::abs(x) + std::abs(y) + std::abs(z));
    out[3 * stride + g] = static_cast<float>((radius[g] + reach[g]) * (1 + 1e-6) + slack);
  }
}

/// hits[j] = allowed[j] and the spheres of the row's geometry and column j overlap.
COULOMB_SIMD void test_row(const float* __restrict x, const float* __restrict y, const float* __restrict z,
                           const float* __restrict r, const std::uint8_t* __restrict allowed, float xi, float yi,
                           float zi, float ri, int n, std::uint8_t* __restrict hits) {
  for (int j = 0; j < n; ++j) {
    const float dx = x[j] - xi;
    const float dy = y[j] - yi;
    const float dz = z[j] - zi;
    const float sum = r[j] + ri;
    hits[j] = static_cast<std::uint8_t>(static_cast<int>(!(dx * dx + dy * dy + dz * dz > sum * sum)) & allowed[j]);
  }
}

}  // namespace

SweptFilter::SweptFilter(const Model& model, int swept_from)
    : tables(model, swept_from), centre(3 * model.num_geometries), reach(model.num_geometries),
      sweep_(tables.make_sweep(model, false)), sphere_(4 * tables.padded), hits_(tables.padded) {
  pairs.reserve(tables.swept ? 8 * tables.padded : model.pair_a.size());
}

void SweptFilter::run(const Model& model, const double* up) {
  const int stride = tables.padded;
  pairs.clear();
  fill_spheres(model.num_geometries, stride, centre.data(), tables.radius.data(), reach.data(), sphere_.data());

  // Half-spaces: the distance of the centre, less the radius and both reaches. One that moves is near everything.
  for (const FilterTables::Plane& plane : tables.planes) {
    const int g = plane.geometry;
    for (std::size_t k = 0; k < plane.pair.size(); ++k) {
      const int other = plane.other[k];
      double arm[3];
      sub3(&centre[3 * other], &centre[3 * g], arm);
      const double gap = dot3(&up[3 * g], arm) - (tables.radius[other] + reach[other]);
      if (reach[g] > 0 || !(gap > 1e-12 * (norm3(arm) + tables.radius[other]))) {
        pairs.push_back(plane.pair[k]);
      }
    }
  }

  // Spheres by rows of their partners ...
  const float* x = sphere_.data();
  const float* y = x + stride;
  const float* z = y + stride;
  const float* r = z + stride;
  for (const FilterTables::Row& row : tables.rows) {
    const int i = row.geometry;
    const int n = row.end - row.begin;
    test_row(x + row.begin, y + row.begin, z + row.begin, r + row.begin, &tables.allowed[row.offset], x[i], y[i], z[i],
             r[i], n, hits_.data());
    for_each_hit(hits_.data(), n, [&](int j) { pairs.push_back(tables.pair_of[row.offset + j]); });
  }

  // ... or by the sweep, which finds pairs that need not be the model's.
  if (tables.swept) {
    sweep_.run({{x, y, z}, r});
    for (std::size_t k = 0; k < sweep_.first.size(); ++k) {
      const int pair = tables.lookup.find(model, sweep_.first[k], sweep_.second[k]);
      if (pair >= 0) pairs.push_back(pair);
    }
  }

  if (!std::is_sorted(pairs.begin(), pairs.end())) {
    std::sort(pairs.begin(), pairs.end());
  }
}

}  // namespace coulomb
