// Archives: plain structs as bytes and back, with the same bits. Every struct is described once, by a function fields(archive, x) that hands
// all of its members to the archive in a fixed order; written and read by the same function. Bytes begin with what they hold, the format's
// number and a checksum; what is not so is refused by name.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace coulomb {

/// To be raised whenever a struct that is archived gains, loses or changes a member. A member that an older format lacks and that may have
/// its default is read under `if (archive.format() >= ...)`; formats before the oldest are refused.
inline constexpr std::uint32_t archive_format = 11;
inline constexpr std::uint32_t oldest_archive_format = 3;

/// payload with a head that names it: kind is "model", "memory", ...
std::string sealed(std::string_view kind, std::string_view payload);
/// The payload of bytes that `sealed` made, and its format. Throws std::invalid_argument: of another kind, a format that is not read, cut off
/// or damaged.
struct Unsealed {
  std::string_view payload;
  std::uint32_t format;
};
Unsealed unsealed(std::string_view kind, std::string_view bytes);
/// These bytes, perhaps only the first ones, are such an archive.
bool is_archive(std::string_view bytes);

namespace archives {

template <class T>
inline constexpr bool is_plain = std::is_arithmetic_v<T> || std::is_enum_v<T>;

/// What writing and reading have in common: how members of each type are taken apart.
template <class Derived>
class Archive {
 public:
  template <class... Members>
  void operator()(Members&... members) {
    (self().member(members), ...);
  }

  template <class T>
    requires is_plain<T>
  void member(T& x) {
    self().raw(&x, 1);
  }
  template <class T, std::size_t n>
  void member(T (&x)[n]) {
    elements(x, n);
  }
  template <class T, std::size_t n>
  void member(std::array<T, n>& x) {
    elements(x.data(), n);
  }
  template <class T>
  void member(std::vector<T>& x) {
    self().resize(x);
    elements(x.data(), x.size());
  }
  void member(std::string& x) {
    self().resize(x);
    self().raw(x.data(), x.size());
  }
  template <class T>
  void member(std::optional<T>& x) {
    bool there = x.has_value();
    member(there);
    if (there && !x) x.emplace();
    if (!there) x.reset();
    if (there) member(*x);
  }
  template <class T>
  void member(std::shared_ptr<T>& x) {
    self().shared(x);
  }
  template <class T>
    requires std::is_class_v<T>
  void member(T& x) {
    fields(self(), x);  // found beside the struct
  }

 private:
  template <class T>
  void elements(T* x, std::size_t count) {
    if constexpr (is_plain<T>)
      self().raw(x, count);
    else
      for (std::size_t i = 0; i < count; ++i)
        member(x[i]);
  }
  Derived& self() { return static_cast<Derived&>(*this); }
};

}  // namespace archives

/// Bytes of what is given to it. What it is given stays as it is.
class ArchiveWriter : public archives::Archive<ArchiveWriter> {
 public:
  const std::string& bytes() const { return bytes_; }
  static constexpr std::uint32_t format() { return archive_format; }

  template <class T>
  void raw(const T* x, std::size_t count) {
    bytes_.append(reinterpret_cast<const char*>(x), count * sizeof(T));
  }
  template <class Container>
  void resize(Container& x) {
    std::uint64_t size = x.size();
    raw(&size, 1);
  }
  /// What several share is written once.
  template <class T>
  void shared(std::shared_ptr<T>& x) {
    std::uint64_t number = seen_.emplace(x.get(), seen_.size()).first->second;
    const bool first = number + 1 == seen_.size() && number == next_;
    raw(&number, 1);
    if (!first) return;
    ++next_;
    member(const_cast<std::remove_const_t<T>&>(*x));
  }

 private:
  std::string bytes_;
  std::map<const void*, std::uint64_t> seen_;
  std::uint64_t next_ = 0;
};

/// Reads what an ArchiveWriter wrote. Throws std::invalid_argument where the bytes end too early.
class ArchiveReader : public archives::Archive<ArchiveReader> {
 public:
  explicit ArchiveReader(std::string_view bytes, std::uint32_t format = archive_format)
      : rest_(bytes), format_(format) {}
  std::uint32_t format() const { return format_; }

  template <class T>
  void raw(T* x, std::size_t count) {
    require(count, sizeof(T));
    if (count == 0) return;  // an empty vector may have no address
    std::memcpy(static_cast<void*>(x), rest_.data(), count * sizeof(T));
    rest_.remove_prefix(count * sizeof(T));
  }
  template <class Container>
  void resize(Container& x) {
    std::uint64_t size = 0;
    raw(&size, 1);
    require(size, 1);  // every element takes a byte at least
    x.resize(static_cast<std::size_t>(size));
  }
  template <class T>
  void shared(std::shared_ptr<T>& x) {
    std::uint64_t number = 0;
    raw(&number, 1);
    if (number < known_.size()) {
      x = std::static_pointer_cast<T>(known_[static_cast<std::size_t>(number)]);
      return;
    }
    auto made = std::make_shared<std::remove_const_t<T>>();
    known_.push_back(made);
    member(*made);
    x = std::move(made);
  }
  /// Throws unless everything was read.
  void finish() const;

 private:
  void require(std::uint64_t count, std::size_t size) const;

  std::string_view rest_;
  std::uint32_t format_;
  std::vector<std::shared_ptr<void>> known_;
};

/// An object as bytes of that kind. The archive reads and writes through the same visits, which need members that can be written: a copy.
template <class T>
std::string saved(std::string_view kind, T copy) {
  ArchiveWriter archive;
  archive(copy);
  return sealed(kind, archive.bytes());
}

/// And back. Throws std::invalid_argument for bytes that `saved` did not write of that kind.
template <class T>
T loaded(std::string_view kind, std::string_view bytes) {
  const Unsealed of = unsealed(kind, bytes);
  ArchiveReader archive(of.payload, of.format);
  T out;
  archive(out);
  archive.finish();
  return out;
}

}  // namespace coulomb
