// What the user of a program says of an option, apart from what the program itself says.
#pragma once

#include <string_view>

namespace mox::internal {

// Whether a configuration file or the command line gives the option, and another value than the program does
// by a run spec: the file that a run writes holds those, too. What set_flag has replaced does not count.
// Throws NotFound for an option that is not declared.
bool is_given_by_user(std::string_view name);

}  // namespace mox::internal
