#include "coulomb/model/name_hints.hpp"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <utility>

namespace coulomb {
namespace {

/// That of difflib's get_close_matches, too.
constexpr double least_likeness = 0.6;
constexpr std::size_t most_guesses = 3;

std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

/// Levenshtein's: letters to insert, delete or exchange.
std::size_t edit_distance(const std::string& a, const std::string& b) {
  // One row of the table of distances between beginnings of a and of b, kept in place.
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t(0));
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t exchanged = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({exchanged, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

/// In [0, 1]; what contains the whole of a name of three letters or more counts as alike.
double likeness(const std::string& a, const std::string& b) {
  const std::size_t longer = std::max(a.size(), b.size());
  const std::size_t shorter = std::min(a.size(), b.size());
  if (longer == 0) return 1;

  const double by_letters = 1 - double(edit_distance(a, b)) / double(longer);
  const bool a_in_b = b.find(a) != std::string::npos;
  const bool b_in_a = a.find(b) != std::string::npos;
  const bool contained = shorter >= 3 && (a_in_b || b_in_a);
  return contained ? std::max(by_letters, least_likeness) : by_letters;
}

}  // namespace

std::vector<std::string> similar_names(const std::string& name, const std::vector<std::string>& names) {
  const std::string sought = lower_case(name);
  std::vector<std::pair<double, std::string>> alike;
  for (const std::string& candidate : names) {
    const double value = likeness(sought, lower_case(candidate));
    if (value >= least_likeness) alike.emplace_back(value, candidate);
  }

  // Equally alike ones stay in the model's order.
  std::stable_sort(alike.begin(), alike.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::string> out;
  const std::size_t count = std::min(alike.size(), most_guesses);
  for (std::size_t i = 0; i < count; ++i)
    out.push_back(alike[i].second);
  return out;
}

std::string listed_names(const std::vector<std::string>& names, std::size_t most) {
  std::string out;
  const std::size_t count = std::min(names.size(), most);
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) out += ", ";
    out += names[i];
  }
  if (names.size() > most) out += ", ...";
  return out;
}

std::string no_such(const std::string& what, const std::string& name, const std::vector<std::string>& names,
                    const std::string& owner) {
  if (names.empty()) return owner + " has no " + what;

  const std::vector<std::string> guesses = similar_names(name, names);
  if (guesses.empty()) return "no such " + what + "; " + owner + " has " + listed_names(names);

  std::string out = "no such " + what + ": did you mean ";
  for (std::size_t i = 0; i < guesses.size(); ++i) {
    if (i > 0) {
      out += i + 1 < guesses.size() ? ", " : " or ";
    }
    out += "'" + guesses[i] + "'";
  }
  // The owner begins a sentence.
  std::string subject = owner;
  subject[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(owner[0])));
  return out + "? " + subject + " has " + listed_names(names);
}

}  // namespace coulomb
