# cmake --install: libraries, public headers and a package file, so that find_package(moxing) works elsewhere.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
get_property(libraries GLOBAL PROPERTY MOX_LIBRARIES)
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME library)
install(TARGETS ${libraries} EXPORT moxing ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT moxing NAMESPACE moxing:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/moxing FILE moxingTargets.cmake)
# What is left out, and what programs included before the rooms: it goes on to where its subject is now.
file(STRINGS ${PROJECT_SOURCE_DIR}/cmake/headers_not_installed.txt not_installed REGEX "^[^#]")
set(exclusions PATTERN "internal" EXCLUDE PATTERN "lanes" EXCLUDE)
foreach(header ${not_installed})
  list(APPEND exclusions PATTERN "${header}" EXCLUDE)
endforeach()
foreach(folder runtime ops moxing models)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder}
          DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/moxing-${PROJECT_VERSION}
          FILES_MATCHING PATTERN "*.h" ${exclusions})
endforeach()
file(STRINGS ${PROJECT_SOURCE_DIR}/cmake/former_headers.txt former_headers REGEX "^[^#]")
foreach(line ${former_headers})
  separate_arguments(names UNIX_COMMAND "${line}")
  list(GET names 0 former)
  list(GET names 1 header)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/former_headers/${former} CONTENT "#pragma once\n#include \"${header}\"\n")
endforeach()
install(DIRECTORY ${CMAKE_BINARY_DIR}/former_headers/
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/moxing-${PROJECT_VERSION})
install(FILES ${PROJECT_SOURCE_DIR}/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.md" PATTERN "*.svg")
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/moxingConfig.cmake.in
  ${CMAKE_BINARY_DIR}/moxingConfig.cmake INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/moxing)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/moxingConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/moxingConfig.cmake ${CMAKE_BINARY_DIR}/moxingConfigVersion.cmake
              ${PROJECT_SOURCE_DIR}/cmake/FindoneDNN.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/moxing)

# Programs, and what is read. (What each component is as a Debian package: MoxPackage.cmake.)
set(jobs mnist_softmax fashion_lenet image_classifier cifar_resnet tabular dim_reduce_resnet)
install(TARGETS mox ${jobs} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)
foreach(program mox ${jobs})  # bash looks for a file of a command's name
  install(FILES ${CMAKE_BINARY_DIR}/completions/mox RENAME ${program}
          DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT tools)
endforeach()
install(FILES ${CMAKE_BINARY_DIR}/completions/_mox
        DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions COMPONENT tools)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/models/ DESTINATION ${CMAKE_INSTALL_DATADIR}/moxing COMPONENT tools
        FILES_MATCHING PATTERN "*.yaml" PATTERN zoo EXCLUDE)
install(FILES ${PROJECT_SOURCE_DIR}/README.md DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/moxing COMPONENT documentation)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/moxing COMPONENT documentation)

# What is installed, without tests and benchmarks.
add_custom_target(mox_packaged DEPENDS ${libraries} mox ${jobs})
