// Options whose values are held elsewhere from mox::init on, where nothing asks for the option again: the
// level of the log, and what the client of object stores is made with.
#pragma once

#include <string_view>

#include "runtime/base/log.h"

namespace mox::internal {

bool is_held(std::string_view option);

// Where it is held it gets the value that the option has now; nothing happens to other options.
void pass_on(std::string_view option);

LogLevel level_named(std::string_view log_level);

// The client of object stores gets the options file.*.
void use_store_options();

}  // namespace mox::internal
