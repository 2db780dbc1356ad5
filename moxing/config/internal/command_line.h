// Reading the command line.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "moxing/config/internal/store.h"

namespace mox::internal {

struct CommandLine {
  bool help = false;
  bool version = false;
  std::vector<std::pair<std::string, std::string>> values;  // name of an option -> text, at most once each
};

// Takes `arguments` (without the program) apart. Throws ConfigError for an unknown flag, an argument that
// belongs to no flag, and a flag without its value.
CommandLine split_command_line(const std::vector<std::string>& arguments, const ConfigStore& store);

// Stores the values of the flags. Throws ConfigError for a value of the wrong type or out of range.
void store_command_line(const CommandLine& command_line, ConfigStore* store);

}  // namespace mox::internal
