// The version of the framework.
#pragma once

#include <string_view>

namespace mox {

// "0.1.0"
std::string_view version();

}  // namespace mox
