// The declared options of a process with their values: what mox::init owns.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "moxing/config/internal/value.h"
#include "moxing/config/options.h"
#include "runtime/base/source_location.h"

namespace mox::internal {

// An option with the values that the sources gave, of which the first in the order set, written, spec,
// code, default counts.
struct Setting {
  Option option;
  std::string declared_at{};             // of a user's flag: "main.cc:12"; empty for a built-in option
  bool has_program_default = false;      // the program has given mox::init a default of its own
  std::optional<OptionValue> code{};     // said by the run spec
  std::optional<OptionValue> spec{};     // said by the run spec's `options`
  std::optional<OptionValue> written{};  // in the YAML file or on the command line
  std::string written_at{};              // "run.yaml:12", "command line"
  std::optional<OptionValue> set{};      // by set_flag
  std::optional<OptionValue> local{};    // where on this machine is what the value names in a store

  const OptionValue& value() const;
  std::string origin() const;
};

// Not thread-safe.
class ConfigStore {
 public:
  ConfigStore();  // with the built-in options

  // Adds a user's flag. Throws InvalidArgument if the name is malformed, taken, or both a key and a section.
  // Few options give way (freeze, predictions): the name is the flag's, and the option is `moxing.NAME`.
  void define(Option option, SourceLocation where);

  Setting* find(std::string_view name);          // nullptr if not declared
  Setting& at(std::string_view name);            // throws NotFound, with the nearest name
  Setting& of_framework(std::string_view name);  // the option of that name, whoever has the name now
  std::vector<std::string> taken_names() const;  // of the options that gave way
  bool is_section(std::string_view name) const;  // whether "name.something" is declared
  std::vector<std::string> names() const;        // in the order of declaration
  std::vector<std::string> keys_of(std::string_view section) const;
  const std::vector<Setting>& settings() const { return settings_; }
  std::vector<Setting>& settings() { return settings_; }

 private:
  // A setting that cannot be there together with one of this name: its key would be the other's section.
  const Setting* section_or_value_beside(std::string_view name) const;

  std::vector<Setting> settings_;
  std::map<std::string, size_t, std::less<>> index_;
};

// Checks and stores a program's default in the place of the framework's.
void store_program_default(Setting* setting, OptionValue value);

// Checks and stores what a run spec or set_flag gives; the type must fit (InvalidArgument).
void store_code(Setting* setting, std::optional<OptionValue> value);
void store_spec(Setting* setting, OptionValue value);
void store_set(Setting* setting, OptionValue value);

}  // namespace mox::internal
