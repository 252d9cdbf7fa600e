// Rounding: the ends of spheres have enough to spare that those which test_spheres lets pass overlap along the axis, too (sphere_slack).
#include "coulomb/collision/broad_phase/sphere_sweep.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "coulomb/collision/broad_phase/hit_bytes.hpp"

namespace coulomb {
namespace {

constexpr int lanes = 16;
constexpr int num_samples = 256;

/// Geometries per pair from which on pairs are sorted by comparing them: counting takes time for every geometry, and sorting some ten
/// comparisons for every pair.
constexpr std::size_t sparse = 8;

/// Pairs (key, value) to where they belong by their keys; those of one key stay in order. starts: room for one per key and one more.
void move_by_key(const std::vector<int>& keys, const std::vector<int>& values, std::vector<int>& starts,
                 std::vector<int>& new_keys, std::vector<int>& new_values) {
  // Counting sort: where each key starts ...
  std::fill(starts.begin(), starts.end(), 0);
  for (const int key : keys)
    ++starts[key + 1];
  std::partial_sum(starts.begin(), starts.end(), starts.begin());

  // ... and one after the other behind it.
  for (std::size_t k = 0; k < keys.size(); ++k) {
    const int at = starts[keys[k]]++;
    new_keys[at] = keys[k];
    new_values[at] = values[k];
  }
}

}  // namespace

SphereSweep::SphereSweep(std::vector<int> members, int num_geometries, std::vector<int> still)
    : still_(std::move(still)) {
  // Room for every member and one more vector.
  const std::size_t n = members.size();
  entries_.reserve(n);
  for (const int g : members)
    entries_.push_back({0, g});
  for (auto* row : {&x_, &y_, &z_, &r_, &low_, &high_})
    row->assign(n + lanes, 0);
  hits_.resize(n + lanes);
  found_.reserve(still_.size());
  keys_.reserve((num_geometries + 1) / sparse + 1);
  starts_.resize(num_geometries + 1);

  // A fixed sample of pairs, from a linear congruential generator.
  std::uint64_t state = 1;
  const auto pick = [&] {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return members[(state >> 33) % n];
  };
  for (int k = 0; k < num_samples && n > 1; ++k) {
    sample_a_.push_back(pick());
    sample_b_.push_back(pick());
  }
}

void SphereSweep::place_still(const SphereRows& spheres) { tree_.build(spheres, still_); }

void SphereSweep::run(const SphereRows& spheres) {
  choose_axis(spheres);
  sort_entries(spheres);
  sweep(spheres);

  // The smaller index first, then in order.
  for (std::size_t k = 0; k < first.size(); ++k)
    if (first[k] > second[k]) {
      std::swap(first[k], second[k]);
    }
  if (sparse * first.size() < starts_.size())
    sort_hits();
  else
    order_hits();
}

/// The axis along which the fewest spheres of the sample overlap; another than the last only when it is much better, since
/// everything has to be sorted anew.
void SphereSweep::choose_axis(const SphereRows& spheres) {
  int overlaps[3];

  // Overlaps along each axis.
  for (int i = 0; i < 3; ++i) {
    const float* c = spheres.centre[i];
    const float* r = spheres.radius;
    overlaps[i] = 0;
    for (std::size_t k = 0; k < sample_a_.size(); ++k) {
      const int a = sample_a_[k];
      const int b = sample_b_[k];
      overlaps[i] += std::abs(c[a] - c[b]) <= r[a] + r[b];
    }
  }

  const int best = static_cast<int>(std::min_element(overlaps, overlaps + 3) - overlaps);
  if (2 * overlaps[best] + 8 < overlaps[axis_]) {
    axis_ = best;
  }
}

/// Little has changed since the last call: insertion takes time linear in the number of spheres. When much has, it gives up.
void SphereSweep::sort_entries(const SphereRows& spheres) {
  // The places now.
  for (Entry& e : entries_)
    e.low = sphere_begin(spheres.centre[axis_][e.geometry], spheres.radius[e.geometry]);

  // Insertion, until it has moved too much.
  std::ptrdiff_t moves_left = 8 * static_cast<std::ptrdiff_t>(entries_.size());
  for (std::size_t i = 1; i < entries_.size() && moves_left > 0; ++i) {
    const Entry moved = entries_[i];
    std::size_t at = i;
    for (; at > 0 && entries_[at - 1].low > moved.low; --at)
      entries_[at] = entries_[at - 1];
    entries_[at] = moved;
    moves_left -= static_cast<std::ptrdiff_t>(i - at);
  }

  if (moves_left <= 0)
    std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) { return a.low < b.low; });
}

/// Pairs of spheres that overlap along the axis, tested eight or sixteen at a time.
void SphereSweep::sweep(const SphereRows& spheres) {
  // Rows in the order of the axis.
  const int n = static_cast<int>(entries_.size());
  for (int p = 0; p < n; ++p) {
    const int g = entries_[p].geometry;
    x_[p] = spheres.centre[0][g];
    y_[p] = spheres.centre[1][g];
    z_[p] = spheres.centre[2][g];
    r_[p] = spheres.radius[g];
    low_[p] = entries_[p].low;
    high_[p] = sphere_end(spheres.centre[axis_][g], r_[p]);
  }

  // With what lies still, from the tree.
  first.clear();
  second.clear();
  for (int p = 0; p < n && !still_.empty(); ++p) {
    found_.clear();
    tree_.find({{x_[p], y_[p], z_[p]}, r_[p]}, found_);
    for (const int other : found_) {
      first.push_back(entries_[p].geometry);
      second.push_back(other);
    }
  }

  // With one another.
  for (int p = 0; p + 1 < n; ++p) {
    // Those that begin before this one ends; padding behind the last is passed over.
    int end = p + 1;
    while (end < n && low_[end] <= high_[p])
      end += lanes;

    if (end == p + 1) continue;
    test_spheres(&x_[p + 1], &y_[p + 1], &z_[p + 1], &r_[p + 1], {{x_[p], y_[p], z_[p]}, r_[p]}, end - p - 1,
                 hits_.data());
    for_each_hit(hits_.data(), end - p - 1, [&](int j) {
      if (p + 1 + j >= n) return;
      first.push_back(entries_[p].geometry);
      second.push_back(entries_[p + 1 + j].geometry);
    });
  }
}

/// Few: by comparing.
void SphereSweep::sort_hits() {
  keys_.resize(first.size());
  for (std::size_t k = 0; k < first.size(); ++k)
    keys_[k] = std::uint64_t(first[k]) << 32 | std::uint64_t(second[k]);
  std::sort(keys_.begin(), keys_.end());
  for (std::size_t k = 0; k < first.size(); ++k) {
    first[k] = static_cast<int>(keys_[k] >> 32);
    second[k] = static_cast<int>(keys_[k] & 0xffffffff);
  }
}

/// Many: counted by the second geometry, then, keeping that order, by the first.
void SphereSweep::order_hits() {
  half_first_.resize(first.size());
  half_second_.resize(first.size());
  move_by_key(second, first, starts_, half_second_, half_first_);
  move_by_key(half_first_, half_second_, starts_, first, second);
}

std::size_t SphereSweep::bytes() const {
  const std::size_t floats = x_.capacity() + y_.capacity() + z_.capacity() + r_.capacity() + low_.capacity();
  const std::size_t ints = first.capacity() + second.capacity() + half_first_.capacity() + half_second_.capacity();
  return sizeof(float) * (floats + high_.capacity()) + sizeof(Entry) * entries_.capacity() + hits_.capacity() +
         sizeof(int) * (ints + starts_.capacity() + sample_a_.capacity() + sample_b_.capacity()) +
         sizeof(int) * (still_.capacity() + found_.capacity()) + sizeof(std::uint64_t) * keys_.capacity() +
         tree_.bytes();
}

}  // namespace coulomb
