#include "ops/processor/compute_library.h"

#include <fmt/format.h>

#include <dnnl.hpp>

#include "runtime/base/build_id.h"

namespace mox {

std::string compute_library() {
  const dnnl_version_t& version = *dnnl_version();
  return fmt::format("oneDNN {}.{}.{}", version.major, version.minor, version.patch);
}

// Of a thing of the library that this program has no copy of, as it may have of functions: what
// it says of itself.
std::string compute_library_build_id() { return build_id_of(dnnl_version()); }

}  // namespace mox
