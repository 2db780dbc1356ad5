#include "moxing/config/flags.h"

#include <fmt/format.h>

#include <utility>

#include "moxing/config/given_by_user.h"
#include "moxing/config/held_options.h"
#include "moxing/config/internal/option_listing.h"
#include "moxing/config/state.h"
#include "moxing/config/uncaught.h"
#include "runtime/base/error.h"

namespace mox {
namespace {

// `shown`: what a message may show of it.
OptionValue value_of(std::string_view function, std::string_view name, std::string* shown = nullptr) {
  OptionValue value;
  internal::with_configured(function, [&](internal::ConfigStore* store) {
    const internal::Setting& setting = store->at(name);
    value = setting.local && !setting.set ? *setting.local : setting.value();
    if (shown) *shown = internal::shown_value(setting.option, value);
  });
  return value;
}

// The alternative T of a flag's value, or InvalidArgument.
template <typename T>
T read(std::string_view name) {
  std::string shown;
  OptionValue value =
      internal::to_stored(std::is_same_v<T, double> ? OptionType::kNumber : OptionType::kString,
                          value_of("get_flag", name, &shown));
  if (T* held = std::get_if<T>(&value)) return std::move(*held);
  if (std::holds_alternative<std::monostate>(value)) {
    throw InvalidArgument(fmt::format("get_flag: the flag '{}' has no value.", name));
  }
  throw InvalidArgument(fmt::format(
      "get_flag: the flag '{}' is of type {} (its value is '{}') and was read as {}.", name,
      internal::type_name(internal::type_of(value)), shown, internal::type_name(internal::type_of(T{}))));
}

template <typename T>
constexpr bool kIsNumberOrString = std::is_same_v<T, NumberOrString>;

template <typename T>
OptionType option_type() {
  if constexpr (kIsNumberOrString<T>) {
    return OptionType::kNumberOrString;
  } else {
    return internal::type_of(T{});
  }
}

template <typename T>
T as(const OptionValue& value) {
  if constexpr (kIsNumberOrString<T>) {
    if (const double* number = std::get_if<double>(&value)) return *number;
    return std::get<std::string>(value);
  } else {
    return std::get<T>(value);
  }
}

template <typename T>
std::optional<OptionValue> stored(const std::optional<T>& from_code) {
  if (!from_code) return std::nullopt;
  if constexpr (kIsNumberOrString<T>) {
    return std::visit([](const auto& held) { return OptionValue(held); }, *from_code);
  } else {
    return OptionValue(*from_code);
  }
}

}  // namespace

namespace internal {

void define_flag(std::string_view name, OptionValue default_value, std::string_view help,
                 SourceLocation where, bool secret) {
  report_uncaught_exceptions();
  with_config([&](ConfigState* state) {
    if (state->configured) {
      throw FailedPrecondition(
          fmt::format("define_flag at {}: the flag '{}' is defined after mox::init, which has read "
                      "the command line already; define it before.",
                      to_string(where), name));
    }
    const OptionType type = type_of(default_value);
    state->store.define({.name = std::string(name),
                         .type = type,
                         .default_value = std::move(default_value),
                         .group = "Flags of this program",
                         .help = std::string(help),
                         .secret = secret},
                        where);
  });
}

void set_flag(std::string_view name, OptionValue value) {
  with_configured("set_flag", [&](ConfigStore* store) { store_set(&store->at(name), std::move(value)); });
  pass_on(name);
}

bool flag_as_bool(std::string_view name) { return read<bool>(name); }

int64_t flag_as_integer(std::string_view name, int64_t lowest, int64_t highest) {
  const int64_t value = read<int64_t>(name);
  if (value < lowest || value > highest) {
    throw InvalidArgument(
        fmt::format("get_flag: the flag '{}' is {}, outside of the range {} to {} of the type that it is "
                    "read as; read it as int64_t.",
                    name, value, lowest, highest));
  }
  return value;
}

double flag_as_number(std::string_view name) { return read<double>(name); }
std::string flag_as_string(std::string_view name) { return read<std::string>(name); }
std::vector<int64_t> flag_as_integer_list(std::string_view name) { return read<std::vector<int64_t>>(name); }
std::vector<double> flag_as_number_list(std::string_view name) { return read<std::vector<double>>(name); }
std::vector<std::string> flag_as_string_list(std::string_view name) {
  return read<std::vector<std::string>>(name);
}

}  // namespace internal

void define_secret_flag(std::string_view name, std::string_view help, SourceLocation where) {
  internal::define_flag(name, std::string(), help, where, true);
}

void reset_flag(std::string_view name) {
  internal::with_configured("reset_flag", [&](internal::ConfigStore* store) { store->at(name).set.reset(); });
  internal::pass_on(name);
}

bool is_given(std::string_view name) {
  const std::string origin = option_origin(name);
  return origin != "default" && origin != "mox::init";
}

bool internal::is_given_by_user(std::string_view name) {
  bool given = false;
  with_configured("is_given_by_user", [&](ConfigStore* store) {
    const Setting& setting = store->at(name);
    const auto& of_program = setting.spec ? setting.spec : setting.code;
    given = setting.written && !setting.set && setting.written != of_program;
  });
  return given;
}

std::optional<std::string> internal::text_of_program(std::string_view name) {
  std::optional<std::string> text;
  with_configured("text_of_program", [&](ConfigStore* store) {
    const Setting& setting = store->of_framework(name);
    if (setting.spec)
      text = std::get<std::string>(*setting.spec);
    else if (setting.has_program_default)
      text = std::get<std::string>(setting.option.default_value);
  });
  return text;
}

bool internal::is_said_by_program(std::string_view name) {
  bool is_said = false;
  with_configured("is_said_by_program", [&](ConfigStore* store) {
    const Setting& setting = store->of_framework(name);
    is_said = setting.spec || setting.has_program_default;
  });
  return is_said;
}

bool internal::is_value_of_program(std::string_view name) {
  bool is_overruled = false;
  with_configured("is_value_of_program", [&](ConfigStore* store) {
    const Setting& setting = store->of_framework(name);
    is_overruled = setting.set || setting.written;
  });
  return !is_overruled && is_said_by_program(name);
}

void internal::set_aside_value_of_program(std::string_view name) {
  with_configured("set_aside_value_of_program", [&](ConfigStore* store) {
    Setting& setting = store->of_framework(name);
    (setting.spec ? setting.spec : setting.code) = OptionValue();
  });
}

std::string flag(std::string_view name) { return internal::to_text(value_of("flag", name)); }

template <typename T>
std::optional<T> resolve_optional(std::string_view name, const std::optional<T>& from_code) {
  OptionValue value;
  internal::with_configured("resolve", [&](internal::ConfigStore* store) {
    internal::Setting& setting = store->of_framework(name);
    if (setting.option.type != option_type<T>()) {
      throw InvalidArgument(fmt::format("resolve: the option '{}' is of type {} and was asked for as {}.",
                                        name, internal::type_name(setting.option.type),
                                        internal::type_name(option_type<T>())));
    }
    if (setting.spec && from_code)
      throw InvalidArgument(fmt::format(
          "'{}' is given twice by the program: in RunSpec::options and by a field of the run spec; "
          "keep one of the two.",
          name));
    internal::store_code(&setting, stored(from_code));
    value = setting.value();
  });
  if (std::holds_alternative<std::monostate>(value)) return std::nullopt;
  return as<T>(value);
}

template <typename T>
T resolve(std::string_view name, const std::optional<T>& from_code) {
  std::optional<T> value = resolve_optional(name, from_code);
  if (!value) {
    throw InvalidArgument(fmt::format("resolve: the option '{}' has no value; use resolve_optional.", name));
  }
  return *std::move(value);
}

template bool resolve(std::string_view, const std::optional<bool>&);
template std::optional<bool> resolve_optional(std::string_view, const std::optional<bool>&);
template int64_t resolve(std::string_view, const std::optional<int64_t>&);
template std::optional<int64_t> resolve_optional(std::string_view, const std::optional<int64_t>&);
template double resolve(std::string_view, const std::optional<double>&);
template std::optional<double> resolve_optional(std::string_view, const std::optional<double>&);
template std::string resolve(std::string_view, const std::optional<std::string>&);
template std::optional<std::string> resolve_optional(std::string_view, const std::optional<std::string>&);
template NumberOrString resolve(std::string_view, const std::optional<NumberOrString>&);
template std::optional<NumberOrString> resolve_optional(std::string_view,
                                                        const std::optional<NumberOrString>&);
template std::vector<int64_t> resolve(std::string_view, const std::optional<std::vector<int64_t>>&);
template std::optional<std::vector<int64_t>> resolve_optional(std::string_view,
                                                              const std::optional<std::vector<int64_t>>&);
template std::vector<double> resolve(std::string_view, const std::optional<std::vector<double>>&);
template std::optional<std::vector<double>> resolve_optional(std::string_view,
                                                             const std::optional<std::vector<double>>&);
template std::vector<std::string> resolve(std::string_view, const std::optional<std::vector<std::string>>&);
template std::optional<std::vector<std::string>> resolve_optional(
    std::string_view, const std::optional<std::vector<std::string>>&);

void store_spec_options(const std::vector<std::pair<std::string, OptionValue>>& options) {
  internal::with_configured("RunSpec::options", [&](internal::ConfigStore* store) {
    for (internal::Setting& setting : store->settings()) setting.spec.reset();
    for (const auto& [name, value] : options) {
      internal::Setting& setting = store->at(name);
      if (setting.option.command_line_only)
        throw InvalidArgument(
            fmt::format("RunSpec::options: '{}' can only be given on the command line.", name));
      if (setting.declared_at.empty() && internal::is_held(name))
        throw InvalidArgument(fmt::format(
            "RunSpec::options: '{}' counts from mox::init on, before any run; give it there, or by set_flag.",
            name));
      if (std::holds_alternative<std::monostate>(value))
        throw InvalidArgument(fmt::format("RunSpec::options gives '{}' no value.", name));
      if (setting.spec)
        throw InvalidArgument(fmt::format("RunSpec::options gives '{}' twice; keep one of the two.", name));
      internal::store_spec(&setting, value);
    }
  });
}

std::string option_origin(std::string_view name) {
  std::string origin;
  internal::with_configured("option_origin",
                            [&](internal::ConfigStore* store) { origin = store->at(name).origin(); });
  return origin;
}

std::string effective_configuration() {
  std::string text;
  internal::with_configured("effective_configuration",
                            [&](internal::ConfigStore* store) { text = internal::effective_yaml(*store); });
  return text;
}

}  // namespace mox
