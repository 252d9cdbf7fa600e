// Checks URDF text before the parser sees it: the parser drops what it cannot read (shapes, inertias, links that hang in a cycle)
// with a line on stderr, and does not name what it refuses.
#pragma once

#include <string>

namespace coulomb {

/// One tree of uniquely named links; numbers are finite and as many as wanted; collision shapes are known. Throws
/// std::invalid_argument naming source, element and value.
void check_urdf(const std::string& xml, const std::string& source);

}  // namespace coulomb
