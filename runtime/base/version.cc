#include "runtime/base/version.h"

namespace mox {

std::string_view version() { return MOX_VERSION; }

}  // namespace mox
