# Compiler flags, as an interface target that the library, the bindings and the tests share.
#
# No -march: the binary runs on every x86-64. Wider SIMD is chosen at load time, function by function (simd.hpp). No -ffast-math: NaN and Inf must stay detectable.
#
# What was compiled before comes from ccache where it is installed, unless a launcher was chosen.
if(PROJECT_IS_TOP_LEVEL AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(CCACHE_PROGRAM ccache)
  mark_as_advanced(CCACHE_PROGRAM)
  if(CCACHE_PROGRAM)
    set(CMAKE_CXX_COMPILER_LAUNCHER "${CCACHE_PROGRAM}")
  endif()
endif()

# Headers that nearly every file needs are compiled once: a third of the time. Only where the package is made for a user: in all other builds
# a file that forgets an include must not compile, and ccache does not go well with it.
if(in_wheel AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(precompile_headers ON)
else()
  set(precompile_headers OFF)
endif()

add_library(coulomb_flags INTERFACE)
target_compile_features(coulomb_flags INTERFACE cxx_std_20)
target_compile_options(coulomb_flags INTERFACE -fno-math-errno -Wall -Wextra -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(coulomb_flags INTERFACE -Wno-restrict)  # of "text" + std::string: GCC bug 105651
endif()
if(COULOMB_WERROR)
  target_compile_options(coulomb_flags INTERFACE -Werror)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # what GCC suspects after inlining, and is often wrong about, stays a warning
    target_compile_options(
      coulomb_flags INTERFACE -Wno-error=stringop-overflow -Wno-error=stringop-overread -Wno-error=array-bounds
                              -Wno-error=maybe-uninitialized -Wno-error=free-nonheap-object)
  endif()
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O3 -DNDEBUG")
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
