# C++ tests: every tests/unit/<room>/.../test_<thing>.cpp is one executable; tests/reference/*.cpp also see Pinocchio and Coal.
set(seconds_per_test 300)
if(CMAKE_CXX_FLAGS MATCHES "sanitize")
  set(seconds_per_test 1200)
endif()

# More than some seconds: left out by `make quick`.
set(slow_tests unit.collision.continuous.test_separation_bound unit.collision.motion.test_shape_motion unit.stepping.impacts.test_first_impact_random)

# coulomb_add_test(<file> <libraries>...)
function(coulomb_add_test file)
  file(RELATIVE_PATH name "${CMAKE_CURRENT_SOURCE_DIR}/tests" "${file}")
  string(REGEX REPLACE "\\.cpp$" "" name "${name}")
  string(REPLACE "/" "." name "${name}")
  add_executable(${name} "${file}")
  target_include_directories(
    ${name} PRIVATE "${private_headers}" "${CMAKE_CURRENT_SOURCE_DIR}/tests/unit" "${CMAKE_CURRENT_SOURCE_DIR}/tests")
  target_link_libraries(${name} PRIVATE coulomb coulomb_flags ${ARGN})
  target_compile_definitions(${name} PRIVATE "COULOMB_TEST_DATA=\"${CMAKE_CURRENT_SOURCE_DIR}/tests/data\"")
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/tests")
  add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}")
  set_tests_properties(${name} PROPERTIES TIMEOUT ${seconds_per_test})
  if(name IN_LIST slow_tests)
    set_tests_properties(${name} PROPERTIES LABELS slow)
  endif()
endfunction()

file(GLOB_RECURSE unit_tests CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/tests/unit/test_*.cpp")
foreach(file IN LISTS unit_tests)
  coulomb_add_test("${file}")
endforeach()

file(GLOB reference_tests CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/tests/reference/*.cpp")
foreach(file IN LISTS reference_tests)
  coulomb_add_test("${file}" pinocchio::pinocchio_default pinocchio::pinocchio_collision pinocchio::pinocchio_parsers coal::coal)
endforeach()

# Every public header compiles by itself, from include/ alone, as a user's first line.
file(GLOB public_headers CONFIGURE_DEPENDS RELATIVE "${CMAKE_CURRENT_SOURCE_DIR}/include" "${CMAKE_CURRENT_SOURCE_DIR}/include/coulomb/*.hpp")
foreach(header IN LISTS public_headers)
  string(REGEX REPLACE "[/.]" "_" name "${header}")
  set(source "${CMAKE_CURRENT_BINARY_DIR}/public_headers/${name}.cpp")
  file(CONFIGURE OUTPUT "${source}" CONTENT "#include <@header@>\n" @ONLY)
  list(APPEND header_sources "${source}")
endforeach()
add_library(coulomb_public_headers OBJECT ${header_sources})
target_link_libraries(coulomb_public_headers PRIVATE coulomb coulomb_flags)
