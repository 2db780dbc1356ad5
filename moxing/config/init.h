// The start of a program: reads the command line and the YAML file that it names, once.
//
// The configuration lives in what init makes; it is the one state of the process that functions reach without
// a handle.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/version.h"

namespace mox {

// Reads `--config FILE` and `--flag=value` / `--flag value` (for a bool also `--flag` and `--no-flag`; of a
// flag that is given twice the last counts), and sets the log level.
//   --help     prints all flags and exits with status 0
//   --version  prints the version and exits with status 0
// A configuration that cannot be used (unknown key or flag, wrong type, value out of range, duplicate key,
// unreadable or malformed file) is reported on stderr in one paragraph and ends the process with status 2,
// before anything has run. Call it once, first thing in main after the define_flag calls; a second call
// throws FailedPrecondition. A process that mpirun has started with others joins them here
// (moxing/job/distributed.h); of these, only rank 0 logs what is no warning. From here on an exception that
// nobody catches is reported in the same way and ends the process with status 1.
void init(int argc, const char* const* argv);

struct InitOptions {
  std::string program;                 // shown in --help
  std::vector<std::string> arguments;  // argv without the program
};

// What init does, without printing and without ending the process: returns the text to print on stdout if the
// program should end now (--help, --version), nothing if it is configured. Throws ConfigError, and then
// nothing is configured.
std::optional<std::string> configure(const InitOptions& options);

// A configuration that lives as long as the object and hides the one around it: no flags defined, nothing
// configured. For tests. Objects must be destroyed in the reverse order of their making.
class ScopedConfiguration {
 public:
  ScopedConfiguration();  // define flags, then call configure
  explicit ScopedConfiguration(const std::vector<std::string>& arguments);  // configured from these arguments
  ~ScopedConfiguration();
  ScopedConfiguration(const ScopedConfiguration&) = delete;
  ScopedConfiguration& operator=(const ScopedConfiguration&) = delete;
};

}  // namespace mox
