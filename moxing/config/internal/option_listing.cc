#include "moxing/config/internal/option_listing.h"

#include <fmt/format.h>

#include <algorithm>

#include "moxing/console/wrapped_text.h"
#include "runtime/text/printable.h"

namespace mox::internal {
namespace {

std::string text_of(const Option& option, const OptionValue& value) {
  if (std::holds_alternative<std::monostate>(value)) return "none";
  return to_text(value).empty() ? "empty" : shown_value(option, value);
}

// Groups in the order of their first option.
std::vector<std::string> groups_of(const std::vector<Option>& options) {
  std::vector<std::string> groups;
  for (const Option& option : options) {
    if (std::find(groups.begin(), groups.end(), option.group) == groups.end()) groups.push_back(option.group);
  }
  return groups;
}

std::vector<Option> options_of(const ConfigStore& store) {
  std::vector<Option> options;
  for (const Setting& setting : store.settings()) options.push_back(setting.option);
  return options;
}

std::string cell(std::string text) {  // a bar would end the cell of a Markdown table
  for (size_t i = text.find('|'); i != std::string::npos; i = text.find('|', i + 2)) text.insert(i, 1, '\\');
  return text;
}

}  // namespace

std::string help_text(const std::string& program, const ConfigStore& store) {
  const size_t width = text_width();
  std::string text = fmt::format("Usage: {} [--flag=value ...]\n\n", program);
  text += wrapped(
      "Every flag is also a key of the YAML file that --config names (a dot in a name is one level of "
      "nesting). The command line overrides the file, the file the program, the program the default. A "
      "program may also give options values where it starts its run (RunSpec), which is later than this is "
      "printed: configuration.yaml in log_dir says what a run really used, and where each value came from.",
      0, width);
  const std::vector<Option> options = options_of(store);
  for (const std::string& group : groups_of(options)) {
    text += fmt::format("\n{}\n", group);
    for (const Setting& setting : store.settings()) {
      const Option& option = setting.option;
      if (option.group != group) continue;
      text += option.type == OptionType::kBool
                  ? fmt::format("  --{0}, --no-{0}\n", option.name)
                  : fmt::format("  --{}=<{}>\n", option.name, type_name(option.type));
      const std::string range = range_text(option);
      const std::string given =
          setting.written ? fmt::format(" Here: {} ({}).", printable(text_of(option, *setting.written)),
                                        printable(setting.written_at))
                          : "";
      text += wrapped(
          fmt::format("{}{}{}{} Default: {}.{}", option.help, range.empty() ? "" : " Accepted: ", range,
                      range.empty() ? "" : ".", text_of(option, option.default_value), given),
          6, width);
    }
  }
  text +=
      "\nHelp\n  --help, -h\n      Print this and exit.\n  --version\n      Print the version and exit.\n";
  return text;
}

std::string effective_yaml(const ConfigStore& store) {
  constexpr size_t kCommentColumn = 40;
  std::vector<const Setting*> settings;
  for (const Setting& setting : store.settings()) {
    const bool has_value = !std::holds_alternative<std::monostate>(setting.value());
    const bool says_nothing = setting.option.secret && to_text(setting.value()).empty();
    if (has_value && !says_nothing && !setting.option.command_line_only) settings.push_back(&setting);
  }
  std::string text;
  std::vector<std::string> open;  // the sections around the last line
  // Keys of one section must stand together, wherever they were declared: top-level keys first,
  // then by section.
  std::stable_sort(settings.begin(), settings.end(), [](const Setting* a, const Setting* b) {
    const auto section = [](const std::string& name) { return name.substr(0, name.rfind('.') + 1); };
    const auto top = [&](const Setting* s) {
      return section(s->option.name).empty() ? "" : section(s->option.name);
    };
    return top(a) < top(b);
  });
  for (const Setting* setting : settings) {
    std::vector<std::string> sections;
    std::string_view key = setting->option.name;
    for (size_t dot = key.find('.'); dot != std::string_view::npos; dot = key.find('.')) {
      sections.emplace_back(key.substr(0, dot));
      key.remove_prefix(dot + 1);
    }
    for (size_t level = 0; level < sections.size(); ++level) {
      if (level < open.size() && open[level] == sections[level]) continue;
      open.resize(level);
      open.push_back(sections[level]);
      text += fmt::format("{}{}:\n", std::string(2 * level, ' '), sections[level]);
    }
    open.resize(sections.size());
    const std::string indent(2 * sections.size(), ' ');
    const std::string line = setting->option.secret
                                 ? fmt::format("{}# {}: a secret, given but not written here", indent, key)
                                 : fmt::format("{}{}: {}", indent, key, to_yaml(setting->value()));
    text += fmt::format("{:<{}}  # {}\n", line, kCommentColumn, setting->origin());
  }
  return text;
}

}  // namespace mox::internal

namespace mox {

std::string configuration_reference() {
  using internal::cell;
  std::string text = R"(# Configuration

<!-- Generated from the declarations in moxing/config/internal/options_*.cc. To write it anew:
     MOX_WRITE_DOCS=1 build/bin/test_moxing_config --gtest_filter='ConfigurationReference.*' -->

Every option is a key of the YAML file that `--config` names, a flag of the command line (`--name=value` or
`--name value`; a bool also `--name` and `--no-name`), and some are fields of the run spec. A dot in a name
is one level of nesting in YAML. Of several values the command line counts first, then the YAML file, then
the program, then the default; of a flag that is given twice the last counts. `set_flag` overrides them all.
A program's own flags (`mox::define_flag`) follow the same rules and show up in `--help`; of those that are
secret (`mox::define_secret_flag`) and of who asks in an address (`user:password@`, `?token=...`) nothing is
shown or written ([security.md](security.md)). A flag cannot have the name of an option, but for `freeze`
and `predictions`: in a program with a flag of that name the option is `moxing.freeze` or
`moxing.predictions`, which is said at the start.

In a text `~` at the beginning is the home directory and `${NAME}` an environment variable (`$${` is the
text `${`); a variable that is not set is an error. `<<: *NAME` brings in the keys of the section that
`&NAME` marks, and a top-level section whose name begins with `x-` is there for that alone. A file may be
UTF-8 or UTF-16. A text that begins with `!` is written in quotes: without them it is a tag, and an error.

An unknown key, a wrong type, a value out of range, a key that is given twice and a malformed file end the
program with status 2 and a message that names the file and the line.
)";
  for (const std::string& group : internal::groups_of(built_in_options())) {
    text += fmt::format("\n## {}\n\n| Key | Type | Default | Meaning |\n|---|---|---|---|\n", group);
    for (const Option& option : built_in_options()) {
      if (option.group != group) continue;
      const std::string range = internal::range_text(option);
      text += fmt::format("| `{}` | {} | {} | {}{}{} |\n", option.name, internal::type_name(option.type),
                          internal::cell(internal::text_of(option, option.default_value)),
                          internal::cell(option.help),
                          range.empty() ? "" : " Accepted: " + internal::cell(range) + ".",
                          option.command_line_only ? " Command line only." : "");
    }
  }
  return text;
}

}  // namespace mox
