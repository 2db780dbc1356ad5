#include "moxing/config/internal/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>

#include "moxing/config/internal/nearest.h"
#include "moxing/file/masked_address.h"
#include "runtime/base/error.h"

namespace mox::internal {
namespace {

// The name of a flag in an argument: "--batch_size=3" and "-batch_size" give "batch_size".
std::string_view flag_name(std::string_view argument) {
  argument.remove_prefix(std::min(argument.find_first_not_of('-'), argument.size()));
  return argument.substr(0, argument.find('='));
}

// Of an argument that belongs to no flag: not the value, which may be a secret's whose name is mistyped, and
// not what an @ follows, which may be the rest of an address that the shell has cut.
std::string shown_argument(const std::string& argument) {
  const std::string name = argument.starts_with('-') ? argument.substr(0, argument.find('=')) : argument;
  const size_t at = name.rfind('@');
  if (at == std::string::npos) return name.substr(0, name.find('='));
  return std::string(file::kMask) + name.substr(at, name.find_first_of("=?#", at) - at);
}

// Whether it may be a word of an address that the shell has cut at its spaces: it follows one whose password
// may not be whole.
bool cuts_address(const std::vector<std::string>& arguments, const std::string& stray) {
  const auto at = std::ranges::find(arguments, stray);
  return at != arguments.begin() && at != arguments.end() && std::prev(at)->find("://") != std::string::npos;
}

[[noreturn]] void throw_unknown(const std::string& argument, const ConfigStore& store, bool gives_secret) {
  if (!argument.starts_with('-')) {
    throw ConfigError(fmt::format(
        "command line: '{}' belongs to no flag; write --flag=value (a bool takes its value after '=' only).",
        gives_secret ? std::string(file::kMask) : shown_argument(argument)));
  }
  std::string_view name = flag_name(argument);
  if (name.starts_with("no-")) name.remove_prefix(3);
  throw ConfigError(fmt::format("command line: unknown flag '{}'; {} (--help lists all).",
                                shown_argument(argument),
                                nearest_option_text("flag", "--", name, store.names())));
}

using OptionsByName = std::map<std::string, const Option*, std::less<>>;

// Whether it is a flag, with a value behind '=' or without, and not something that belongs to none.
bool is_known_flag(const std::string& argument, const OptionsByName& options) {
  if (argument == "-h" || argument == "--help" || argument == "--version") return true;
  if (!argument.starts_with("--")) return false;
  const std::string_view name = flag_name(argument);
  if (options.contains(name)) return true;
  const auto positive = name.starts_with("no-") ? options.find(name.substr(3)) : options.end();
  return positive != options.end() && positive->second->type == OptionType::kBool;
}

// The arguments with every value that follows "--flag" or "--flag=" checked to be there: CLI11 would take the
// next flag for the value.
std::vector<std::string> with_values_in_place(const std::vector<std::string>& arguments,
                                              const ConfigStore& store) {
  OptionsByName options;
  for (const Setting& setting : store.settings()) options.emplace(setting.option.name, &setting.option);
  std::vector<std::string> checked;
  std::string secret;  // the flag before, if it is one
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (!secret.empty() && !is_known_flag(argument, options))
      throw ConfigError(fmt::format(
          "command line: what follows the value of --{} belongs to no flag; it is not shown, since "
          "it may be a part of that secret. Put a text with spaces in quotes.",
          secret));
    checked.push_back(argument);
    secret.clear();
    if (!argument.starts_with("--")) continue;
    const std::string_view name = flag_name(argument);
    const auto found = options.find(name);
    if (found == options.end()) continue;
    const Option& option = *found->second;
    if (option.secret) secret = name;
    if (option.type == OptionType::kBool) {
      if (argument.ends_with('=') && argument.size() == name.size() + 3) {
        throw ConfigError(fmt::format("command line: {} expects true or false, got ''.", name));
      }
      continue;
    }
    if (argument.size() == name.size() + 3) {  // "--flag=" gives the empty text
      checked.back().pop_back();
      checked.emplace_back();
    } else if (argument.size() == name.size() + 2) {
      if (i + 1 == arguments.size() || arguments[i + 1].starts_with("--")) {
        throw ConfigError(fmt::format("command line: --{} needs a value; write --{}=VALUE.", name, name));
      }
      checked.push_back(arguments[++i]);
    }
  }
  return checked;
}

}  // namespace

CommandLine split_command_line(const std::vector<std::string>& arguments, const ConfigStore& store) {
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  CLI::Option* help = app.add_flag("-h,--help");
  CLI::Option* version = app.add_flag("--version");
  std::vector<std::pair<std::string, CLI::Option*>> options;
  for (const Setting& setting : store.settings()) {
    const std::string& name = setting.option.name;
    CLI::Option* option = setting.option.type == OptionType::kBool
                              ? app.add_flag(fmt::format("--{},!--no-{}", name, name))
                              : app.add_option("--" + name)->expected(1)->allow_extra_args(false);
    option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    options.emplace_back(name, option);
  }
  std::vector<std::string> reversed = with_values_in_place(arguments, store);
  std::reverse(reversed.begin(), reversed.end());  // the order that CLI11 takes
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::Error& failure) {
    throw ConfigError(fmt::format("command line: {}.", failure.what()));
  }
  CommandLine result{.help = help->count() > 0, .version = version->count() > 0, .values = {}};
  if (const std::vector<std::string> unknown = app.remaining(); !unknown.empty()) {
    const bool gives_secret = std::ranges::any_of(store.settings(), [&](const Setting& setting) {
      return setting.option.secret && app.count("--" + setting.option.name) > 0;
    });
    throw_unknown(unknown[0], store, gives_secret || cuts_address(arguments, unknown[0]));
  }
  for (const auto& [name, option] : options) {
    if (option->count() > 0) result.values.emplace_back(name, option->results().back());
  }
  return result;
}

void store_command_line(const CommandLine& command_line, ConfigStore* store) {
  for (const auto& [name, text] : command_line.values) {
    Setting& setting = store->at(name);
    setting.written = parse_value(setting.option, written_text(setting.option, text, "command line"));
    setting.written_at = "command line";
  }
}

}  // namespace mox::internal
