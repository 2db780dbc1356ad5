// Reading a YAML configuration file.
#pragma once

#include <string>

#include "moxing/config/internal/store.h"

namespace mox::internal {

// Stores the values of the file at `path`; origins are "FILE:LINE" with FILE as given. Nested keys and dotted
// keys mean the same. Throws ConfigError for a file that is missing, unreadable, too large or malformed, and
// for a key that is unknown, given twice, of the wrong type or out of range.
void read_yaml(const std::string& path, ConfigStore* store);

}  // namespace mox::internal
