// The start of a program: reads the command line and the YAML file that it names, once.
//
// The configuration lives in what init makes; it is the one state of the process that functions reach without
// a handle.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "moxing/config/options.h"
#include "runtime/base/version.h"

namespace mox {

// Values of options by their names.
using ProgramDefaults = std::vector<std::pair<std::string, OptionValue>>;

// Reads `--config FILE` and `--flag=value` / `--flag value` (for a bool also `--flag` and `--no-flag`; of a
// flag that is given twice the last counts), and sets the log level.
//   --help     prints all flags with their defaults, and what a --config or a flag beside it says of them,
//              in the width of the terminal (or COLUMNS), and exits with status 0
//   --version  prints the version and exits with status 0
// A configuration that cannot be used (unknown key or flag, wrong type, value out of range, duplicate key,
// unreadable or malformed file) is reported on stderr in one paragraph and ends the process with status 2,
// before anything has run. Call it once, first thing in main after the define_flag calls; a second call
// throws FailedPrecondition. A process that mpirun has started with others joins them here
// (moxing/job/distributed.h); of these, only rank 0 logs what is no warning. From here on an exception that
// nobody catches is reported in the same way and ends the process with status 1.
//
// `defaults`: what the program takes for options of the framework, by name, where neither the configuration
// nor the run spec says otherwise, in the place of the framework's defaults:
//   mox::init(argc, argv, {{"batch_size", 128}, {"inter_mode", "eval"}, {"optimizer.name", "momentum"}});
// --help shows them, which it cannot of a run spec that the program makes later. A name that is not declared,
// a value of another type or out of range ends the process as a refused configuration does.
void init(int argc, const char* const* argv, const ProgramDefaults& defaults = {});

struct InitOptions {
  std::string program;                 // shown in --help
  std::vector<std::string> arguments;  // argv without the program
  ProgramDefaults defaults = {};       // see init
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
