#include "coulomb/base/archive.hpp"

#include "coulomb/version.hpp"

namespace coulomb {
namespace {

constexpr std::string_view magic = "coulomb archive\x1a\n";
constexpr std::uint32_t byte_order = 0x01020304;

[[noreturn]] void refuse(std::string_view kind, const std::string& why) {
  throw std::invalid_argument(std::string(kind) + ": " + why);
}

// FNV-1a.
std::uint64_t checksum(std::string_view bytes) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : bytes)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

}  // namespace

std::string sealed(std::string_view kind, std::string_view payload) {
  ArchiveWriter head;
  std::string what(kind), by = version();
  std::uint32_t order = byte_order, format = archive_format;
  std::uint64_t size = payload.size(), sum = checksum(payload);
  head(order, format, by, what, size, sum);
  return std::string(magic) + head.bytes() + std::string(payload);
}

bool is_archive(std::string_view bytes) { return bytes.substr(0, magic.size()) == magic; }

Unsealed unsealed(std::string_view kind, std::string_view bytes) {
  if (!is_archive(bytes)) {
    refuse(kind, "these bytes were not written by Coulomb");
  }
  bytes.remove_prefix(magic.size());

  // The head's first entries are the same in every format.
  std::string what, by;
  std::uint32_t order = 0, format = 0;
  std::uint64_t size = 0, sum = 0;
  ArchiveReader head(bytes);
  head(order);
  if (order != byte_order) {
    refuse(kind, "written on a machine of another byte order");
  }
  head(format, by);
  if (format < oldest_archive_format || format > archive_format)
    refuse(kind, "written by Coulomb " + by + " in format " + std::to_string(format) + "; this is Coulomb " +
                     version() + ", which reads formats " + std::to_string(oldest_archive_format) + " to " +
                     std::to_string(archive_format) +
                     ": read it with that version, or make it again from its file or Scene");
  head(what, size, sum);
  if (what != kind) {
    refuse(kind, "these bytes hold a " + what);
  }

  // What follows is the payload, all of it.
  const std::size_t head_size = 2 * sizeof(std::uint32_t) + 4 * sizeof(std::uint64_t) + by.size() + what.size();
  bytes.remove_prefix(head_size);
  if (bytes.size() != size)
    refuse(kind, "cut off: " + std::to_string(bytes.size()) + " bytes, expected " + std::to_string(size));
  if (checksum(bytes) != sum) {
    refuse(kind, "damaged: the checksum is another one");
  }
  return {bytes, format};
}

void ArchiveReader::require(std::uint64_t count, std::size_t size) const {
  if (count <= rest_.size() / size) return;
  throw std::invalid_argument("archive: cut off: it ends within a member");
}

void ArchiveReader::finish() const {
  if (!rest_.empty()) {
    throw std::invalid_argument("archive: " + std::to_string(rest_.size()) + " bytes are left over");
  }
}

}  // namespace coulomb
