// Serialisation of the data that steppers keep of a step. One visit of all members runs three times: to measure, to
// write and to read. Lists follow one another, each aligned to eight bytes.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

namespace coulomb::kept {

constexpr std::size_t aligned(std::size_t bytes) { return (bytes + 7) / 8 * 8; }

/// How many bytes a step needs.
class Measuring {
 public:
  template <class T>
  void value(const T&) {
    bytes += aligned(sizeof(T));
  }
  template <class T>
  void first(const std::vector<T>&, std::size_t count) {
    bytes += aligned(count * sizeof(T));
  }
  template <class T>
  void view(const std::span<const T>& list) {
    bytes += aligned(sizeof(std::size_t)) + aligned(list.size_bytes());
  }
  std::size_t bytes = 0;
};

/// Into memory of that size.
class Writing {
 public:
  explicit Writing(std::byte* to) : to_(to) {}
  template <class T>
  void value(const T& x) {
    copy(&x, 1);
  }
  template <class T>
  void first(const std::vector<T>& list, std::size_t count) {
    copy(list.data(), count);
  }
  template <class T>
  void view(const std::span<const T>& list) {
    value(list.size());
    copy(list.data(), list.size());
  }

 private:
  template <class T>
  void copy(const T* x, std::size_t count) {
    static_assert(std::is_trivially_copyable_v<T>);
    if (count > 0) std::memcpy(to_, x, count * sizeof(T));
    to_ += aligned(count * sizeof(T));
  }
  std::byte* to_;
};

/// And out of it again.
class Reading {
 public:
  explicit Reading(const std::byte* from) : from_(from) {}
  template <class T>
  void value(T& x) {
    std::memcpy(&x, from_, sizeof(T));
    from_ += aligned(sizeof(T));
  }
  /// Lists that are longer keep their length.
  template <class T>
  void first(std::vector<T>& list, std::size_t count) {
    if (list.size() < count) list.resize(count);
    if (count > 0) std::memcpy(list.data(), from_, count * sizeof(T));
    from_ += aligned(count * sizeof(T));
  }
  /// Of the bytes themselves.
  template <class T>
  void view(std::span<const T>& list) {
    std::size_t count = 0;
    value(count);
    list = {reinterpret_cast<const T*>(from_), count};
    from_ += aligned(count * sizeof(T));
  }

 private:
  const std::byte* from_;
};

/// A list that is as long as the step made it.
template <class Pass, class List>
void whole(Pass& pass, List& list) {
  std::size_t count = list.size();
  pass.value(count);
  if constexpr (!std::is_const_v<List>) list.resize(count);
  pass.first(list, count);
}

}  // namespace coulomb::kept
