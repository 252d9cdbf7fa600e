// Whether loaders were given the name of a file.
#pragma once

#include <filesystem>
#include <string>
#include <system_error>

namespace coulomb {

/// False also for what no file can be called, such as a text that is no XML.
inline bool is_file(const std::string& name) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(name, ignored);
}

/// For messages: the beginning of what was given instead of the name of a file.
inline std::string shortened(const std::string& name) {
  constexpr std::size_t longest = 200;
  return name.size() <= longest ? name : name.substr(0, longest) + "...";
}

}  // namespace coulomb
