// Built from above: halves along the axis on which the centres lie farthest apart, each a multiple of a full subtree, so that children of
// one box follow one another and no links are needed.
#include "coulomb/collision/broad_phase/sphere_tree.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "coulomb/base/simd.hpp"
#include "coulomb/collision/broad_phase/hit_bytes.hpp"

namespace coulomb {
namespace {

constexpr int children = 16;
constexpr float infinity = std::numeric_limits<float>::infinity();

/// Centres of padding: far from everything whose square is finite.
constexpr float far_away = 1e18f;

COULOMB_SIMD void test_rows(const float* __restrict x, const float* __restrict y, const float* __restrict z,
                            const float* __restrict r, float xi, float yi, float zi, float ri, int n,
                            std::uint8_t* __restrict hits) {
  for (int j = 0; j < n; ++j) {
    const float dx = x[j] - xi;
    const float dy = y[j] - yi;
    const float dz = z[j] - zi;
    const float reach = r[j] + ri;
    hits[j] = static_cast<std::uint8_t>(!(dx * dx + dy * dy + dz * dz > reach * reach));
  }
}

/// hits[j] = box j and the box of the query, whose columns are alike, have a point in common. Rows: low x, y, z, high x, y, z.
COULOMB_SIMD void test_children(const float* __restrict box, const float* __restrict query,
                                std::uint8_t* __restrict hits) {
  for (int j = 0; j < children; ++j) {
    bool apart = false;
    for (int i = 0; i < 3; ++i) {
      const int low = i * children + j;
      const int high = (3 + i) * children + j;
      apart |= box[low] > query[high];
      apart |= box[high] < query[low];
    }
    hits[j] = static_cast<std::uint8_t>(!apart);
  }
}

/// How many of `count` go to the first half: about half, in full subtrees.
int first_half(int count) {
  int subtree = 1;
  while (subtree * children < count)
    subtree *= children;
  const int half = (count / 2 + subtree / 2) / subtree * subtree;
  return std::clamp(half, subtree, (count - 1) / subtree * subtree);
}

}  // namespace

void test_spheres(const float* x, const float* y, const float* z, const float* r, const SphereAt& sphere, int n,
                  std::uint8_t* hits) {
  test_rows(x, y, z, r, sphere.centre[0], sphere.centre[1], sphere.centre[2], sphere.radius, n, hits);
}

void SphereTree::build(const SphereRows& spheres, const std::vector<int>& geometries) {
  // Neighbours side by side.
  const int n = static_cast<int>(geometries.size());
  order_ = geometries;
  arrange(spheres, 0, n);

  // Their spheres, and padding that nothing touches.
  const int padded = (n + children - 1) / children * children;
  for (auto* row : {&x_, &y_, &z_})
    row->assign(padded, far_away);
  r_.assign(padded, 0);
  for (int k = 0; k < n; ++k) {
    const int g = order_[k];
    x_[k] = spheres.centre[0][g];
    y_[k] = spheres.centre[1][g];
    z_[k] = spheres.centre[2][g];
    r_[k] = spheres.radius[g];
  }

  // Boxes of the leaves, of sixteen leaves, and so on.
  int count = padded / children;
  int height = n > 0 ? 1 : 0;
  for (int above = count; above > children; above = (above + children - 1) / children)
    ++height;
  levels_.resize(height);
  for (int level = 0; level < height; ++level) {
    Boxes none;
    std::fill(&none.low[0][0], &none.low[0][0] + 3 * children, infinity);
    std::fill(&none.high[0][0], &none.high[0][0] + 3 * children, -infinity);
    const int parents = (count + children - 1) / children;
    levels_[level].assign(parents, none);

    // What lies in one child.
    for (int child = 0; child < count; ++child) {
      float low[3] = {infinity, infinity, infinity};
      float high[3] = {-infinity, -infinity, -infinity};
      for (int j = 0; j < children; ++j)
        for (int i = 0; i < 3; ++i) {
          if (level > 0) {
            const Boxes& below = levels_[level - 1][child];
            low[i] = std::min(low[i], below.low[i][j]);
            high[i] = std::max(high[i], below.high[i][j]);
          } else if (children * child + j < n) {
            const int g = order_[children * child + j];
            low[i] = std::min(low[i], sphere_begin(spheres.centre[i][g], spheres.radius[g]));
            high[i] = std::max(high[i], sphere_end(spheres.centre[i][g], spheres.radius[g]));
          }
        }
      add_boxes(level, child, low, high);
    }
    count = parents;
  }
}

void SphereTree::arrange(const SphereRows& spheres, int begin, int end) {
  if (end - begin <= children) return;

  // The longest axis; what is no number lies at zero.
  const auto place = [&spheres](int axis, int g) {
    const float x = spheres.centre[axis][g];
    return std::isnan(x) ? 0.0f : x;
  };
  int longest = 0;
  float most = -1;
  for (int i = 0; i < 3; ++i) {
    float low = infinity;
    float high = -infinity;
    for (int k = begin; k < end; ++k) {
      low = std::min(low, place(i, order_[k]));
      high = std::max(high, place(i, order_[k]));
    }
    if (high - low > most) {
      most = high - low;
      longest = i;
    }
  }

  const int middle = begin + first_half(end - begin);
  std::nth_element(order_.begin() + begin, order_.begin() + middle, order_.begin() + end,
                   [&](int a, int b) { return place(longest, a) < place(longest, b); });
  arrange(spheres, begin, middle);
  arrange(spheres, middle, end);
}

void SphereTree::add_boxes(int level, int child, const float* low, const float* high) {
  Boxes& parent = levels_[level][child / children];
  for (int i = 0; i < 3; ++i) {
    parent.low[i][child % children] = low[i];
    parent.high[i][child % children] = high[i];
  }
}

void SphereTree::find(const SphereAt& sphere, std::vector<int>& found) const {
  if (levels_.empty()) return;
  Boxes query;
  for (int i = 0; i < 3; ++i) {
    std::fill(query.low[i], query.low[i] + children, sphere_begin(sphere.centre[i], sphere.radius));
    std::fill(query.high[i], query.high[i] + children, sphere_end(sphere.centre[i], sphere.radius));
  }
  find_below(static_cast<int>(levels_.size()) - 1, 0, query, sphere, found);
}

void SphereTree::find_below(int level, int box, const Boxes& query, const SphereAt& sphere,
                            std::vector<int>& found) const {
  std::uint8_t hits[children];
  test_children(&levels_[level][box].low[0][0], &query.low[0][0], hits);
  for_each_hit(hits, children, [&](int j) {
    const int child = children * box + j;
    if (level > 0) {
      // Padding is touched by what has no end or is no number.
      if (child < static_cast<int>(levels_[level - 1].size())) find_below(level - 1, child, query, sphere, found);
      return;
    }

    // A leaf: its spheres.
    const int begin = children * child;
    const int end = static_cast<int>(order_.size());
    if (begin >= end) return;
    std::uint8_t touching[children];
    test_spheres(&x_[begin], &y_[begin], &z_[begin], &r_[begin], sphere, children, touching);
    for_each_hit(touching, children, [&](int k) {
      if (begin + k < end) found.push_back(order_[begin + k]);
    });
  });
}

std::size_t SphereTree::bytes() const {
  const std::size_t floats = x_.capacity() + y_.capacity() + z_.capacity() + r_.capacity();
  std::size_t boxes = 0;
  for (const std::vector<Boxes>& level : levels_)
    boxes += level.capacity();
  return sizeof(int) * order_.capacity() + sizeof(float) * floats + sizeof(Boxes) * boxes;
}

}  // namespace coulomb
