// The library that computes what our own kernels do not, oneDNN: another version, or another build, may cut
// its sums differently, so that the last bits of a result differ.
#pragma once

#include <string>

namespace mox {

// "oneDNN 3.7.2": the version that this process runs with. Any thread.
std::string compute_library();

// The build id of the shared library that holds it (runtime/base/build_id.h); "" if it has none. Any thread.
std::string compute_library_build_id();

}  // namespace mox
