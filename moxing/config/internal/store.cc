#include "moxing/config/internal/store.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "moxing/config/internal/expansion.h"
#include "moxing/config/internal/nearest.h"
#include "runtime/base/error.h"

namespace mox::internal {
namespace {

bool is_well_formed(std::string_view name) {
  char before = '.';
  for (char c : name) {
    const bool letter = (c >= 'a' && c <= 'z') || c == '_';
    const bool digit = c >= '0' && c <= '9';
    if (!(letter || ((digit || c == '.') && before != '.'))) return false;
    before = c;
  }
  return before != '.';
}

// Options whose names give way to a program's own flag. An option belongs here if it does nothing where
// nobody asks for it and programs are likely to have a flag of that name: theirs then means what its author
// says, and no run changes its meaning because an option joined the framework. All others are refused as
// flags: with two owners of batch_size one of them would train with a value that nobody gave.
constexpr std::array<std::string_view, 2> kNamesThatGiveWay = {"freeze", "predictions"};
constexpr std::string_view kLongPrefix = "moxing.";

std::string_view first_sentence(std::string_view text) { return text.substr(0, text.find(". ")); }

// `value` as the option stores it, or InvalidArgument.
OptionValue checked(const Option& option, OptionValue value, const std::string& where) {
  value = to_stored(option.type, std::move(value));
  if (!holds_type(option.type, value)) {
    throw InvalidArgument(fmt::format("'{}' is an option of type {}; {} gives it a value of type {} ('{}').",
                                      option.name, type_name(option.type), where, type_name(type_of(value)),
                                      shown_value(option, value)));
  }
  const auto expand = [&](std::string& text) {
    text = expanded(text, where, option.name, shown_text(option, text));
  };
  if (auto* text = std::get_if<std::string>(&value); text && option.type == OptionType::kString)
    expand(*text);
  if (auto* texts = std::get_if<std::vector<std::string>>(&value))
    for (std::string& text : *texts) expand(text);
  check_value(option, value, where);
  return value;
}

}  // namespace

const OptionValue& Setting::value() const {
  if (set) return *set;
  if (written) return *written;
  if (spec) return *spec;
  if (code) return *code;
  return option.default_value;
}

std::string Setting::origin() const {
  if (set) return "set_flag";
  if (written) return written_at;
  if (spec) return "RunSpec::options";
  if (code) return "code";
  return has_program_default ? "mox::init" : "default";
}

ConfigStore::ConfigStore() {
  for (const Option& option : built_in_options()) {
    index_.emplace(option.name, settings_.size());
    settings_.push_back({.option = option});
  }
}

void ConfigStore::define(Option option, SourceLocation where) {
  const std::string place = to_string(where);
  if (!is_well_formed(option.name) || option.name == "help" || option.name == "version") {
    throw InvalidArgument(
        fmt::format("define_flag at {}: '{}' cannot be the name of a flag: use lower-case letters, digits "
                    "and underscores, with dots between the parts of a nested name, and not 'help' or "
                    "'version'.",
                    place, option.name));
  }
  const Setting* taken = find(option.name);
  const bool gives_way = taken && taken->declared_at.empty() &&
                         std::ranges::find(kNamesThatGiveWay, option.name) != kNamesThatGiveWay.end();
  if (taken && !gives_way) {
    throw InvalidArgument(fmt::format(
        "define_flag at {}: the flag '{}' of this program is already defined {}; {}.", place, option.name,
        taken->declared_at.empty()
            ? fmt::format("by moxing as an option of its own (\"{}\")", first_sentence(taken->option.help))
            : "at " + taken->declared_at,
        taken->declared_at.empty()
            ? "choose another name, or leave this definition out and read moxing's value with mox::get_flag"
            : "choose another name"));
  }
  const std::string long_name = std::string(kLongPrefix) + option.name;
  const Setting* other = section_or_value_beside(option.name);
  if (gives_way && !other) other = find(long_name) ? find(long_name) : section_or_value_beside(long_name);
  if (other) {
    throw InvalidArgument(fmt::format(
        "define_flag at {}: with the flag '{}' of this program and '{}', which is defined {}, one name "
        "would be a value and a section of keys at once; choose another name.",
        place, option.name, other->option.name,
        other->declared_at.empty() ? "by moxing" : "at " + other->declared_at));
  }
  option.default_value = checked(option, std::move(option.default_value), "define_flag at " + place);
  if (gives_way) {
    auto node = index_.extract(option.name);
    settings_[node.mapped()].option.name = long_name;
    node.key() = long_name;
    index_.insert(std::move(node));
  }
  index_.emplace(option.name, settings_.size());
  settings_.push_back({.option = std::move(option), .declared_at = place});
}

Setting& ConfigStore::of_framework(std::string_view name) {
  Setting* renamed = find(std::string(kLongPrefix) + std::string(name));
  return renamed && renamed->declared_at.empty() ? *renamed : at(name);
}

std::vector<std::string> ConfigStore::taken_names() const {
  std::vector<std::string> names;
  for (const Setting& setting : settings_)
    if (setting.declared_at.empty() && setting.option.name.starts_with(kLongPrefix))
      names.push_back(setting.option.name.substr(kLongPrefix.size()));
  return names;
}

Setting* ConfigStore::find(std::string_view name) {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &settings_[found->second];
}

Setting& ConfigStore::at(std::string_view name) {
  if (Setting* setting = find(name)) return *setting;
  throw NotFound(
      fmt::format("there is no flag '{}'; {}. Flags of your own are declared with mox::define_flag "
                  "before mox::init.",
                  name, nearest_option_text("flag", "", name, names())));
}

const Setting* ConfigStore::section_or_value_beside(std::string_view name) const {
  for (size_t dot = name.find('.'); dot != std::string_view::npos; dot = name.find('.', dot + 1))
    if (const auto above = index_.find(name.substr(0, dot)); above != index_.end())
      return &settings_[above->second];
  const std::string prefix = std::string(name) + ".";
  const auto below = index_.lower_bound(prefix);
  return below != index_.end() && below->first.starts_with(prefix) ? &settings_[below->second] : nullptr;
}

bool ConfigStore::is_section(std::string_view name) const {
  const std::string prefix = std::string(name) + ".";
  const auto next = index_.lower_bound(prefix);
  return next != index_.end() && next->first.starts_with(prefix);
}

std::vector<std::string> ConfigStore::names() const {
  std::vector<std::string> names;
  for (const Setting& setting : settings_) names.push_back(setting.option.name);
  return names;
}

std::vector<std::string> ConfigStore::keys_of(std::string_view section) const {
  const std::string prefix = std::string(section) + ".";
  std::vector<std::string> keys;
  for (const Setting& setting : settings_) {
    const std::string& name = setting.option.name;
    if (!name.starts_with(prefix)) continue;
    const std::string key = name.substr(prefix.size(), name.find('.', prefix.size()) - prefix.size());
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
  }
  return keys;
}

void store_program_default(Setting* setting, OptionValue value) {
  setting->option.default_value = checked(setting->option, std::move(value), "mox::init");
  setting->has_program_default = true;
}

void store_code(Setting* setting, std::optional<OptionValue> value) {
  if (value) value = checked(setting->option, *std::move(value), "code");
  setting->code = std::move(value);
}

void store_spec(Setting* setting, OptionValue value) {
  setting->spec = checked(setting->option, std::move(value), "RunSpec::options");
}

void store_set(Setting* setting, OptionValue value) {
  setting->set = checked(setting->option, std::move(value), "set_flag");
}

}  // namespace mox::internal
