# libcoulomb from src/coulomb and the public headers of include/coulomb.
#
# Only the loaders see urdfdom, TinyXML-2, Assimp and Qhull: they are an object library of their own, so that an include anywhere else does
# not compile. Public headers need public headers and the standard library; a C++ user sees include/ only.
file(GLOB_RECURSE coulomb_sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/src/coulomb/*.cpp")
set(loader_sources ${coulomb_sources})
list(FILTER loader_sources INCLUDE REGEX "/model/(loaders/(urdf[a-z_]*|mesh_files)|shapes/convex_hull)\\.cpp$")
set(mjcf_sources ${coulomb_sources})
list(FILTER mjcf_sources INCLUDE REGEX "/model/loaders/mjcf\\.cpp$")
list(REMOVE_ITEM coulomb_sources ${loader_sources})

# What the rooms have among themselves; the bindings and the tests may see it too, and nobody else.
set(private_headers "${CMAKE_CURRENT_SOURCE_DIR}/src")

# Pictures have the same bits on every processor: what is compiled for those with fused multiply-adds must not use them.
set(render_sources ${coulomb_sources})
list(FILTER render_sources INCLUDE REGEX "/coulomb/render/[a-z_]*\\.cpp$")
set_source_files_properties(${render_sources} PROPERTIES COMPILE_OPTIONS -ffp-contract=off SKIP_PRECOMPILE_HEADERS ON)

# What runs once, when a scene is built, read or saved, is compiled for the compiler's time.
set(cold_sources ${coulomb_sources})
list(FILTER cold_sources INCLUDE REGEX "/coulomb/(model/(scene|loaders)/[a-z_]*|.*_archive|model/name_hints)\\.cpp$")
set_source_files_properties(${cold_sources} PROPERTIES COMPILE_OPTIONS -O1)

add_library(coulomb SHARED ${coulomb_sources})
add_library(coulomb::coulomb ALIAS coulomb)
target_include_directories(
  coulomb PUBLIC "$<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include>" "$<INSTALL_INTERFACE:${install_include}>"
          PRIVATE "${private_headers}")
target_compile_features(coulomb PUBLIC cxx_std_20)
find_package(Threads REQUIRED)
target_link_libraries(coulomb PRIVATE $<BUILD_INTERFACE:coulomb_flags> Threads::Threads)
if(NOT CMAKE_CXX_FLAGS MATCHES "sanitize")
  target_link_options(coulomb PRIVATE LINKER:-z,defs)
endif()
# The environment variable COULOMB_SIMD: resolvers of GCC's clones ask src/coulomb/base/instruction_set.cpp which instructions there are.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64|amd64" AND NOT CMAKE_CXX_FLAGS MATCHES "COULOMB_NO_SIMD_CLONES")
  target_link_options(coulomb PRIVATE LINKER:--wrap=__cpu_indicator_init)
  # It runs while the library is being relocated: loops must not become calls of the C library.
  set_source_files_properties(src/coulomb/base/instruction_set.cpp PROPERTIES COMPILE_OPTIONS -fno-tree-loop-distribute-patterns)
endif()
if(NOT in_wheel)  # a wheel keeps no symbolic links: it would hold the library three times
  set_target_properties(coulomb PROPERTIES SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR} VERSION ${PROJECT_VERSION})
endif()

set(loader_libraries urdfdom::urdfdom_model tinyxml2::tinyxml2 console_bridge::console_bridge Qhull::qhull_r ${assimp_libraries})
add_library(coulomb_loaders OBJECT ${loader_sources})
target_include_directories(coulomb_loaders PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}/include" "${private_headers}")
target_link_libraries(coulomb_loaders PRIVATE coulomb_flags ${loader_libraries})
if(assimp_libraries)
  target_compile_definitions(coulomb_loaders PRIVATE COULOMB_WITH_ASSIMP)
endif()
target_sources(coulomb PRIVATE $<TARGET_OBJECTS:coulomb_loaders>)
# By file, not by target: the exported package must not ask its users for these targets.
foreach(library IN LISTS loader_libraries)
  target_link_libraries(coulomb PRIVATE $<TARGET_FILE:${library}>)
endforeach()

if(precompile_headers)
  target_precompile_headers(
    coulomb PRIVATE <algorithm> <array> <cmath> <functional> <map> <memory> <optional> <stdexcept> <string> <vector>
                    "${CMAKE_CURRENT_SOURCE_DIR}/include/coulomb/model.hpp")
endif()

# With the MuJoCo C library, MJCF files can be read from C++. In a wheel Python does that (cmake/CoulombDependencies.cmake).
if(mujoco_library AND mjcf_sources)
  set_source_files_properties(${mjcf_sources} PROPERTIES COMPILE_DEFINITIONS COULOMB_WITH_MUJOCO INCLUDE_DIRECTORIES "${mujoco_include}")
  target_link_libraries(coulomb PRIVATE "${mujoco_library}")
endif()
