// For tests of bad input: whether it is refused with these words.
#pragma once

#include <stdexcept>
#include <string>

namespace coulomb::test {

/// Does it throw std::invalid_argument whose message holds the words?
template <class Action>
bool refuses(Action action, const std::string& words) {
  try {
    action();
  } catch (const std::invalid_argument& error) {
    return std::string(error.what()).find(words) != std::string::npos;
  }
  return false;
}

}  // namespace coulomb::test
