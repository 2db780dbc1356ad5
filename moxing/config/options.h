// Options: everything that a YAML file or the command line may set. Each is declared once; the declaration
// gives the YAML key, the flag, the text of --help and the page docs/configuration.md.
//
// A value comes from the first of these that has one:
//   set_flag (the program, after init)  >  command line  >  YAML file (--config)  >  code (the run spec: its
//   RunSpec::options, its fields; what the program gives mox::init)  >  default.
// Every value knows where it comes from, so that a run can print what it really uses and why.
//
// Threads: all functions may be called from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace mox {

enum class OptionType {
  kBool,
  kInteger,  // int64_t
  kNumber,   // a finite double
  kString,
  kNumberOrString,  // a double if the text is a number, else a string (a learning rate or its schedule)
  kIntegerList,
  kNumberList,
  kStringList,
};

// The value of an option; which alternative it holds is decided by the option's type. std::monostate: no
// value (an option that has no default and is not given).
using OptionValue = std::variant<std::monostate, bool, int64_t, double, std::string, std::vector<int64_t>,
                                 std::vector<double>, std::vector<std::string>>;
using NumberOrString = std::variant<double, std::string>;

struct Option {
  std::string name;  // "batch_size"; dots nest: "optimizer.name" is key `name` of `optimizer:`
  OptionType type = OptionType::kString;
  OptionValue default_value;
  std::string group;                   // heading in --help and in the reference
  std::string help;                    // one or two sentences, with units and the meaning of 0 or empty
  std::vector<std::string> allowed{};  // strings only: the texts that are accepted; empty: any
  std::optional<double> minimum{};     // numbers only, inclusive
  std::optional<double> maximum{};     // numbers only, inclusive
  // kStringList only: each text is made of words KEY=VALUE with these keys, which a YAML file may also write
  // as a section of keys.
  std::vector<std::string> fields{};
  bool command_line_only = false;  // makes no sense inside a YAML file
  bool secret = false;             // text that is never shown or written (define_secret_flag)
};

// The options of the framework, in the order in which they are documented. To add one, add a row to the table
// of its subject (internal/options_<subject>.cc) and regenerate docs/configuration.md.
const std::vector<Option>& built_in_options();

// The value that a run uses, given what the run spec says (`from_code`, empty if it says nothing). What the
// spec says is kept, so that effective_configuration shows it. T is bool, int64_t, double, std::string,
// NumberOrString or a std::vector of int64_t, double or std::string, and must be the option's type. Throws
// ConfigError if `from_code` is out of range or not an allowed value, NotFound for a name that is not
// declared, InvalidArgument for the wrong T, FailedPrecondition before mox::init.
template <typename T>
T resolve(std::string_view name, const std::optional<T>& from_code);

// The same for an option that may have no value. (resolve throws InvalidArgument when there is none.)
template <typename T>
std::optional<T> resolve_optional(std::string_view name, const std::optional<T>& from_code);

// Where the value of an option comes from: "default", "mox::init", "code", "RunSpec::options", "run.yaml:12",
// "command line" or "set_flag". Throws as resolve does.
std::string option_origin(std::string_view name);

// What a run spec says of any options (RunSpec::options), in place of what an earlier one has said: it counts
// as code does, and before the from_code of resolve. Throws NotFound for a name that is not declared,
// InvalidArgument for one that is given twice or only on the command line or for a value of another type,
// ConfigError for one out of range.
void store_spec_options(const std::vector<std::pair<std::string, OptionValue>>& options);

// Every option with its value and origin, as YAML that --config accepts:
//   batch_size: 100  # run.yaml:3
// Of a secret only a comment says that it was given, and of an address not who asks: "http://***@host/",
// which --config refuses until that is put in again.
// Throws FailedPrecondition before mox::init.
std::string effective_configuration();

// docs/configuration.md: the built-in options as Markdown, made from their declarations.
std::string configuration_reference();

}  // namespace mox
