# ./dev package: what `cmake --install` installs as Debian packages, one a component, for the release that this is built on.
#   libmoxing-dev  the library with its headers and CMake files
#   moxing         the mox command; jobs, with their YAML in /usr/share/moxing
#   moxing-doc     documentation

# "12", "13"; "" elsewhere.
set(release "")
if(EXISTS /etc/os-release)
  file(STRINGS /etc/os-release release REGEX "^VERSION_ID=")
  string(REGEX REPLACE "[^0-9.]" "" release "${release}")
endif()

set(CPACK_GENERATOR DEB)
set(CPACK_CMAKE_GENERATOR Ninja)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGE_VENDOR "The moxing authors")
set(CPACK_PACKAGE_CONTACT "The moxing authors")
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_COMPONENTS_ALL library tools documentation)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE "1~deb${release}")
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)

# A program links the static library with all that the library is made of.
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libmoxing-dev)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_LIBRARY_DESCRIPTION "The library, its headers and the files with which CMake finds it: find_package(moxing).")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_DEPENDS
  "g++, libcli11-dev, libcurl4-openssl-dev, libdnnl-dev, libeigen3-dev, libfmt-dev, libjpeg-dev, libpng-dev, libprotobuf-dev, libpugixml-dev,\
 libspdlog-dev, libssl-dev, libtbb-dev, libyaml-cpp-dev, nlohmann-json3-dev, zlib1g-dev")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_RECOMMENDS "ca-certificates, cmake, moxing")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SUGGESTS "moxing-doc")

set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME moxing)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION science)
set(CPACK_DEBIAN_TOOLS_DESCRIPTION "The mox command (starts jobs of several processes, looks into checkpoints) and jobs that need no programming: an image
classifier, models of tables, and LeNet, softmax regression and ResNet-20, with a boost phase, too, on small data sets.")
set(CPACK_DEBIAN_TOOLS_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_TOOLS_PACKAGE_RECOMMENDS "ca-certificates, openmpi-bin")
set(CPACK_DEBIAN_TOOLS_PACKAGE_SUGGESTS "dataset-fashion-mnist, moxing-doc")

set(CPACK_DEBIAN_DOCUMENTATION_PACKAGE_NAME moxing-doc)
set(CPACK_DEBIAN_DOCUMENTATION_PACKAGE_SECTION doc)
set(CPACK_DEBIAN_DOCUMENTATION_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_DOCUMENTATION_DESCRIPTION "The pages of moxing's documentation, in Markdown.")

include(CPack)
