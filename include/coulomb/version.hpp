// The version of Coulomb. This file is where it is written: CMake and pyproject.toml read it from here.
#pragma once

#define COULOMB_VERSION "0.1.0"

namespace coulomb {

/// Version of the library at run time, "major.minor.patch".
const char* version();

}  // namespace coulomb
