# Every third-party library is a Debian package; packages.txt lists them and `./dev setup` installs them.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(TBB REQUIRED)
find_package(Eigen3 REQUIRED NO_MODULE)
find_package(yaml-cpp REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(ZLIB REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_package(oneDNN 2.6 REQUIRED)
find_package(JPEG REQUIRED)
find_package(PNG REQUIRED)
find_package(Protobuf REQUIRED)
find_package(CURL 7.85 REQUIRED)
find_package(pugixml REQUIRED)

# oneDNN's Debian build runs on libgomp. Our own parallel loops use the same thread pool (runtime/base/team.cc),
# whatever compiler builds them, so libgomp is linked by path rather than through -fopenmp.
execute_process(COMMAND g++ -print-file-name=libgomp.so OUTPUT_VARIABLE MOX_GOMP_PATH
                OUTPUT_STRIP_TRAILING_WHITESPACE)
if(NOT EXISTS "${MOX_GOMP_PATH}")
  message(FATAL_ERROR "libgomp.so was not found: install g++ (./dev setup does)")
endif()

# Of Open MPI the header alone: its library is opened at run time, by processes that mpirun has started.
find_path(MOX_MPI_INCLUDE_DIR mpi.h PATH_SUFFIXES openmpi
          HINTS /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/openmpi/include /usr/lib/x86_64-linux-gnu/openmpi/include)
if(NOT MOX_MPI_INCLUDE_DIR)
  message(FATAL_ERROR "mpi.h was not found: install libopenmpi-dev (./dev setup does)")
endif()
