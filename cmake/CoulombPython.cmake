# The Python module coulomb._core: one file of python/bindings per folder of src/coulomb.
if(NOT Python_Development.Module_FOUND)
  message(FATAL_ERROR "Python.h is missing: on Debian or Ubuntu, `apt install python3-dev`")
endif()
if(NOT nanobind_DIR)
  coulomb_ask_python(nanobind_ROOT "import nanobind; print(nanobind.cmake_dir())")
endif()
find_package(nanobind CONFIG REQUIRED)

file(GLOB binding_sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/python/bindings/*.cpp")
nanobind_add_module(_core NB_STATIC NOMINSIZE ${binding_sources})
target_include_directories(_core PRIVATE "${private_headers}")
target_link_libraries(_core PRIVATE coulomb coulomb_flags)
if(NOT CMAKE_CXX_FLAGS MATCHES "sanitize")
  target_compile_options(_core PRIVATE -O2)  # it hands over: the rest is only time to compile
endif()
if(precompile_headers)
  target_precompile_headers(_core PRIVATE <nanobind/nanobind.h> <nanobind/ndarray.h> "${CMAKE_CURRENT_SOURCE_DIR}/python/bindings/arrays.hpp")
endif()
set_target_properties(_core PROPERTIES INSTALL_RPATH "$ORIGIN/lib")

# Sanitized, it stays in the build folder, and loads only into a Python that the sanitizer's runtime is preloaded to (tools/sanitized_tests.py).
if(CMAKE_CXX_FLAGS MATCHES "sanitize")
  return()
endif()
nanobind_add_stub(_core_stub MODULE _core OUTPUT _core.pyi PYTHON_PATH "$<TARGET_FILE_DIR:_core>" DEPENDS _core)

install(TARGETS _core LIBRARY DESTINATION coulomb COMPONENT python)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/_core.pyi" DESTINATION coulomb COMPONENT python)
