#include "moxing/config/init.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "moxing/config/held_options.h"
#include "moxing/config/internal/command_line.h"
#include "moxing/config/internal/expansion.h"
#include "moxing/config/internal/option_listing.h"
#include "moxing/config/internal/yaml.h"
#include "moxing/config/options.h"
#include "moxing/config/remote_places.h"
#include "moxing/config/state.h"
#include "moxing/config/uncaught.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/job/job.h"
#include "runtime/text/printable.h"

namespace mox {
namespace {

// A program that was started with a closed standard stream would get its number for the next file that it
// opens, and print into that file.
void occupy_standard_streams() {
  for (int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(descriptor, F_GETFD) == -1 && errno == EBADF)
      ::open("/dev/null", O_RDWR);  // takes the lowest number
}

// What the data_url names in an object store comes to this machine before the program asks for it. A value
// that is refused, and data that are not there, end the program like any refused value; a store that does not
// answer does so with the status of a failed job, which may be started again.
void fetch_or_exit() {
  try {
    internal::use_store_options();
    internal::fetch_data();
  } catch (const Error& failure) {
    const int status = internal::exit_status_of(failure);
    if (internal::job().size() > 1) internal::fail_job(failure.what(), status);
    std::fputs(fmt::format("error: {}\n", printable_message(failure.what())).c_str(), stderr);
    std::exit(status);
  }
}

void store_defaults(const ProgramDefaults& defaults, internal::ConfigStore* store) {
  for (const auto& [name, value] : defaults) {
    internal::Setting& setting = store->at(name);
    if (setting.option.command_line_only || !setting.declared_at.empty())
      throw InvalidArgument(fmt::format(
          "mox::init: '{}' takes no default here: it is {}", name,
          setting.declared_at.empty() ? "for the command line only" : "a flag of the program (define_flag)"));
    if (setting.has_program_default)
      throw InvalidArgument(fmt::format("mox::init gives '{}' two defaults; keep one of the two.", name));
    internal::store_program_default(&setting, value);
  }
}

// Who reads of the option in the documentation is told where it is in this program.
void tell_taken_names() {
  internal::with_configured("init", [&](internal::ConfigStore* store) {
    for (const std::string& name : store->taken_names())
      log_info(
          fmt::format("--{0} is a flag of this program ({1}); moxing's option of this name is "
                      "--moxing.{0} here",
                      name, store->at(name).declared_at));
  });
}

void read_configuration(const internal::CommandLine& command_line, internal::ConfigStore* store) {
  for (const auto& [name, path] : command_line.values) {
    if (name == "config" && !path.empty())
      internal::read_yaml(internal::expanded(path, "command line", name, path), store);
  }
  internal::store_command_line(command_line, store);
}

// Help is there for a configuration that cannot be used, too.
std::string help_with(const std::string& program, const internal::CommandLine& command_line,
                      const internal::ConfigStore& store) {
  try {
    internal::ConfigStore configured = store;
    read_configuration(command_line, &configured);
    return internal::help_text(program, configured);
  } catch (const ConfigError& failure) {
    return internal::help_text(program, store) +
           fmt::format("\nNot shown above: {}\n", printable_message(failure.what()));
  }
}

// Works on a copy, so that a refused configuration leaves nothing behind.
std::optional<std::string> configured(const InitOptions& options, internal::ConfigState* state) {
  internal::ConfigStore store = state->store;
  store_defaults(options.defaults, &store);
  const internal::CommandLine command_line = internal::split_command_line(options.arguments, store);
  if (command_line.help) return help_with(options.program, command_line, store);
  if (command_line.version) return fmt::format("{} (moxing {})\n", options.program, version());
  read_configuration(command_line, &store);
  set_log_level(internal::level_named(std::get<std::string>(store.at("log_level").value())));
  state->store = std::move(store);
  state->configured = true;
  return std::nullopt;
}

}  // namespace

std::optional<std::string> configure(const InitOptions& options) {
  std::optional<std::string> text;
  internal::with_config([&](internal::ConfigState* state) {
    if (state->configured)
      throw FailedPrecondition("mox::init was called twice: call it once, first thing in main.");
    text = configured(options, state);
  });
  return text;
}

void init(int argc, const char* const* argv, const ProgramDefaults& defaults) {
  occupy_standard_streams();
  internal::report_uncaught_exceptions();
  InitOptions options{.program = "", .arguments = {}, .defaults = defaults};
  if (argc > 0) {
    const std::string path = argv[0];
    options.program = path.substr(path.rfind('/') + 1);
    options.arguments.assign(argv + 1, argv + argc);
  }
  std::optional<std::string> text;
  try {
    text = configure(options);
  } catch (const FailedPrecondition&) {
    throw;  // a second call
  } catch (const Error& failure) {
    std::fputs(fmt::format("error: {}\n", printable_message(failure.what())).c_str(), stderr);
    std::exit(internal::exit_status_of(failure));
  }
  if (text) {
    fmt::print("{}", printable_lines(*text));  // it has values from files
    std::exit(EXIT_SUCCESS);
  }
  // Before it waits for others, which may take long.
  internal::set_stall_limits(resolve<double>("stall_warning_s", std::nullopt),
                             resolve<double>("stall_abort_s", std::nullopt));
  internal::join_job(internal::level_named(resolve<std::string>("log_level", std::nullopt)));
  if (internal::job().rank() == 0) tell_taken_names();
  fetch_or_exit();
}

ScopedConfiguration::ScopedConfiguration() { internal::push_config(); }

ScopedConfiguration::ScopedConfiguration(const std::vector<std::string>& arguments) {
  internal::push_config();
  try {
    const std::optional<std::string> text = configure({.program = "test", .arguments = arguments});
    if (text)
      throw InvalidArgument("ScopedConfiguration: --help and --version configure nothing; use configure.");
  } catch (...) {
    internal::pop_config();
    throw;
  }
}

ScopedConfiguration::~ScopedConfiguration() { internal::pop_config(); }

}  // namespace mox
