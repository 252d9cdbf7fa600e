# Installation: library, public headers (include/, all of it and nothing else) and the CMake package coulomb. Component `cpp`; the Python module is component `python`.
#
# In a wheel all of it lies in the Python package, and beside it the small libraries that its loaders link: $ORIGIN finds them,
# and no version of theirs is asked of the environment. In an ordinary prefix the run path names the folders that the library was linked
# against.
if(in_wheel)
  set_target_properties(coulomb PROPERTIES INSTALL_RPATH "$ORIGIN")
  install(TARGETS coulomb RUNTIME_DEPENDENCY_SET loaded COMPONENT cpp LIBRARY DESTINATION "${install_lib}")
  install(RUNTIME_DEPENDENCY_SET loaded COMPONENT cpp
    PRE_INCLUDE_REGEXES "liburdfdom_model" "libtinyxml2" "libconsole_bridge" "libqhull_r" PRE_EXCLUDE_REGEXES ".*"
    DIRECTORIES "${cmeel_prefix}/lib" LIBRARY DESTINATION "${install_lib}")
else()
  set(run_path "$ORIGIN")
  if(cmeel_prefix)
    list(APPEND run_path "${cmeel_prefix}/lib")
  endif()
  if(mujoco_library)
    get_filename_component(mujoco_folder "${mujoco_library}" DIRECTORY)
    list(APPEND run_path "${mujoco_folder}")
  endif()
  set_target_properties(coulomb PROPERTIES INSTALL_RPATH "${run_path}" INSTALL_RPATH_USE_LINK_PATH ON)
endif()

include(CMakePackageConfigHelpers)
install(TARGETS coulomb EXPORT coulombTargets COMPONENT cpp
  LIBRARY DESTINATION "${install_lib}" COMPONENT cpp
  RUNTIME DESTINATION "${install_lib}" COMPONENT cpp)
install(DIRECTORY include/coulomb DESTINATION "${install_include}" COMPONENT cpp FILES_MATCHING PATTERN "*.hpp")
install(EXPORT coulombTargets NAMESPACE coulomb:: DESTINATION "${install_lib}/cmake/coulomb" COMPONENT cpp)
configure_package_config_file(cmake/coulombConfig.cmake.in coulombConfig.cmake INSTALL_DESTINATION "${install_lib}/cmake/coulomb")
write_basic_package_version_file(coulombConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/coulombConfig.cmake" "${CMAKE_CURRENT_BINARY_DIR}/coulombConfigVersion.cmake"
  DESTINATION "${install_lib}/cmake/coulomb" COMPONENT cpp)
