// Messages about names that are not there: what it may have been, and what there is.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace coulomb {

/// Up to three of `names` that resemble `name`, most alike first: few letters differ, or one contains the other.
std::vector<std::string> similar_names(const std::string& name, const std::vector<std::string>& names);

/// "a, b, c"; of more than `most` the first ones and "...".
std::string listed_names(const std::vector<std::string>& names, std::size_t most = 12);

/// "no such joint: did you mean 'knee_1' or 'knee_2'? The model has hip_1, ...", or without a guess "no such joint; the model has
/// hip_1, ...". Nothing to choose from: "the model has no joint". `owner`: instead of the model.
std::string no_such(const std::string& what, const std::string& name, const std::vector<std::string>& names,
                    const std::string& owner = "the model");

}  // namespace coulomb
