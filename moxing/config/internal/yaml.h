// Reading a YAML configuration file.
#pragma once

#include <string>

#include "moxing/config/internal/store.h"

namespace mox::internal {

// Stores the values of the file at `path`; origins are "FILE:LINE" with FILE as given. Nested keys and dotted
// keys mean the same. `<<` brings in the keys of other sections, as YAML's merge keys do; a top-level section
// whose name begins with "x-" is there for that alone. UTF-8 and UTF-16 are read. Throws ConfigError for a
// file that is missing, unreadable, too large or malformed, and for a key that is unknown, given twice, of
// the wrong type or out of range.
void read_yaml(const std::string& path, ConfigStore* store);

}  // namespace mox::internal
