# Installation: library, public headers (include/, all of it and nothing else) and the CMake package coulomb. Component `cpp`; the Python module is component `python`.
#
# In a wheel all of it lies in cmeel.prefix/, beside Pinocchio's and Coal's libraries, and $ORIGIN finds them. In an ordinary prefix
# the run path also names the folders that the library was linked against.
if(in_wheel)
  set_target_properties(coulomb PROPERTIES INSTALL_RPATH "$ORIGIN")
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
