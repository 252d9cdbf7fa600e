// The version compiled into the library: differs from COULOMB_VERSION when a program runs with another library than it was built for.
#include "coulomb/version.hpp"

namespace coulomb {

const char* version() { return COULOMB_VERSION; }

}  // namespace coulomb
