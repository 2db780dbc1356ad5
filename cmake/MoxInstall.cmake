# cmake --install: libraries, public headers and a package file, so that find_package(moxing) works elsewhere.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
get_property(libraries GLOBAL PROPERTY MOX_LIBRARIES)
install(TARGETS ${libraries} EXPORT moxing ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT moxing NAMESPACE moxing:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/moxing FILE moxingTargets.cmake)
foreach(folder runtime ops moxing models)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder}
          DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/moxing-${PROJECT_VERSION}
          FILES_MATCHING PATTERN "*.h" PATTERN "internal" EXCLUDE)
endforeach()
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/moxingConfig.cmake.in
  ${CMAKE_BINARY_DIR}/moxingConfig.cmake INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/moxing)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/moxingConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/moxingConfig.cmake ${CMAKE_BINARY_DIR}/moxingConfigVersion.cmake
              ${PROJECT_SOURCE_DIR}/cmake/FindoneDNN.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/moxing)
