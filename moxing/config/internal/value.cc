#include "moxing/config/internal/value.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "moxing/config/internal/expansion.h"
#include "moxing/config/internal/old_names.h"
#include "moxing/file/masked_address.h"
#include "runtime/base/error.h"
#include "runtime/base/nearest_name.h"

namespace mox::internal {
namespace {

using Kind = WrittenValue::Kind;

// How a value is shown in a message: what kind of thing it is, and its text, cut if it is long.
std::string shown(const Option& option, const WrittenValue& written) {
  constexpr size_t kLongest = 80;
  switch (written.kind) {
    case Kind::kNothing:
      return "nothing";
    case Kind::kMap:
      return "a section of keys";
    case Kind::kList:
      return fmt::format("a list of {}", written.size);
    case Kind::kScalar:
      break;
  }
  std::string text = shown_text(option, written.text);
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
  return fmt::format("{}'{}'", written.quoted ? "the text " : "", text);
}

[[noreturn]] void throw_wrong_type(const Option& option, std::string_view expected,
                                   const WrittenValue& written) {
  throw ConfigError(fmt::format("{}: {} expects {}, got {}.", written.where, option.name, expected,
                                shown(option, written)));
}

// The whole of `text` as a number, or nothing. "+5" is taken as 5.
template <typename Number>
std::errc read_number(std::string_view text, Number* number) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  if (end != text.data() + text.size()) return std::errc::invalid_argument;
  return error;
}

int64_t parse_integer(const Option& option, const WrittenValue& written) {
  int64_t number = 0;
  if (written.kind != Kind::kScalar || written.quoted)
    throw_wrong_type(option, expectation(OptionType::kInteger), written);
  const std::errc error = read_number(written.text, &number);
  if (error == std::errc::result_out_of_range) {
    throw ConfigError(fmt::format("{}: {} must fit in 64 bits, got {}.", written.where, option.name,
                                  shown(option, written)));
  }
  if (error != std::errc()) throw_wrong_type(option, expectation(OptionType::kInteger), written);
  return number;
}

double parse_number(const Option& option, const WrittenValue& written) {
  double number = 0;
  if (written.kind != Kind::kScalar || written.quoted || read_number(written.text, &number) != std::errc() ||
      !std::isfinite(number)) {
    throw_wrong_type(option, expectation(OptionType::kNumber), written);
  }
  return number;
}

bool parse_bool(const Option& option, const WrittenValue& written) {
  const std::string text = lower_case(written.text);
  if (written.kind == Kind::kScalar && !written.quoted) {
    if (text == "true" || text == "yes" || text == "on" || text == "1") return true;
    if (text == "false" || text == "no" || text == "off" || text == "0") return false;
  }
  throw_wrong_type(option, expectation(OptionType::kBool), written);
}

// A section of keys as the words that an option with fields takes.
std::string words_of(const Option& option, const WrittenValue& section) {
  std::string words;
  for (const WrittenValue& element : section.elements) {
    const std::string key = element.text.substr(0, element.text.find('='));
    if (std::find(option.fields.begin(), option.fields.end(), key) == option.fields.end())
      throw ConfigError(fmt::format("{}: unknown key '{}' in {}; it takes {}.", element.where, key,
                                    option.name, fmt::join(option.fields, ", ")));
    if (element.kind != Kind::kScalar || element.text.find(' ') != std::string::npos)
      throw ConfigError(fmt::format("{}: '{}' in {} takes one word.", element.where, key, option.name));
    words += (words.empty() ? "" : " ") + element.text;
  }
  return words;
}

std::string parse_string(const Option& option, const WrittenValue& written) {
  if (written.kind == Kind::kMap && !option.fields.empty()) return words_of(option, written);
  if (written.kind != Kind::kScalar) throw_wrong_type(option, expectation(OptionType::kString), written);
  return expanded(written.text, written.where, option.name, shown_text(option, written.text));
}

using NextElement = std::function<WrittenValue()>;

template <typename Element>
std::vector<Element> parse_list(const Option& option, const WrittenValue& written, const NextElement& next,
                                Element (*parse_element)(const Option&, const WrittenValue&)) {
  if (written.kind != Kind::kList) throw_wrong_type(option, expectation(option.type), written);
  std::vector<Element> list;
  list.reserve(written.size);
  for (size_t i = 0; i < written.size; ++i) list.push_back(parse_element(option, next()));
  return list;
}

OptionValue parse_typed(const Option& option, const WrittenValue& written, const NextElement& next) {
  switch (option.type) {
    case OptionType::kBool:
      return parse_bool(option, written);
    case OptionType::kInteger:
      return parse_integer(option, written);
    case OptionType::kNumber:
      return parse_number(option, written);
    case OptionType::kString:
      return parse_string(option, written);
    case OptionType::kNumberOrString: {
      double number = 0;
      if (written.kind != Kind::kScalar) throw_wrong_type(option, expectation(option.type), written);
      if (read_number(written.text, &number) == std::errc::invalid_argument) return written.text;
      return parse_number(option,
                          {.text = written.text, .where = written.where});  // quotes make no difference here
    }
    case OptionType::kIntegerList:
      return parse_list<int64_t>(option, written, next, parse_integer);
    case OptionType::kNumberList:
      return parse_list<double>(option, written, next, parse_number);
    case OptionType::kStringList:
      return parse_list<std::string>(option, written, next, parse_string);
  }
  MOX_ASSERT(false, "every option type is handled");
  return false;
}

// What was masked as it was written down is no address any more.
void require_unmasked(const Option& option, const std::string& text, const std::string& where) {
  if (option.secret || !file::is_masked_address(text)) return;
  throw ConfigError(
      fmt::format("{}: {} is '{}', where what says who asks (before the @, or in the query) was left out "
                  "as it was written down; give the whole address.",
                  where, option.name, file::masked_address(text)));
}

std::string number_text(double number) { return fmt::format("{}", number); }

std::string quoted_yaml(const std::string& text) {
  YAML::Emitter emitter;
  emitter << YAML::DoubleQuoted << text;
  return emitter.c_str();
}

std::string masked_yaml(const std::string& text) {
  return quoted_yaml(unexpanded(file::masked_address(text)));
}

template <typename Element, typename Format>
std::string join(const std::vector<Element>& list, std::string_view separator, Format format) {
  std::string text;
  for (const Element& element : list) {
    if (&element != list.data()) text += separator;
    text += format(element);
  }
  return text;
}

WrittenValue split_list(const std::string& text, const std::string& where) {
  std::string_view rest = text;
  if (rest.size() >= 2 && rest.front() == '[' && rest.back() == ']') rest = rest.substr(1, rest.size() - 2);
  WrittenValue list{.kind = Kind::kList, .where = where};
  if (rest.empty()) return list;
  for (;;) {
    const size_t comma = rest.find(',');
    std::string_view element = rest.substr(0, comma);
    while (!element.empty() && element.front() == ' ') element.remove_prefix(1);
    while (!element.empty() && element.back() == ' ') element.remove_suffix(1);
    list.elements.push_back({.text = std::string(element), .where = where});
    ++list.size;
    if (comma == std::string_view::npos) return list;
    rest.remove_prefix(comma + 1);
  }
}

template <typename... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <typename... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

}  // namespace

OptionValue parse_value(const Option& option, const WrittenValue& written) {
  return parse_value(option, written, [element = written.elements.begin()]() mutable { return *element++; });
}

OptionValue parse_value(const Option& option, const WrittenValue& written,
                        const std::function<WrittenValue()>& next_element) {
  OptionValue value = parse_typed(option, written, next_element);
  check_value(option, value, written.where);
  return value;
}

bool is_list(OptionType type) {
  return type == OptionType::kIntegerList || type == OptionType::kNumberList ||
         type == OptionType::kStringList;
}

WrittenValue written_text(const Option& option, const std::string& text, const std::string& where) {
  if (is_list(option.type)) return split_list(text, where);
  return {.text = text, .where = where};
}

void check_value(const Option& option, const OptionValue& value, const std::string& where) {
  const auto check_number = [&](double number) {
    if ((option.minimum && number < *option.minimum) || (option.maximum && number > *option.maximum)) {
      throw ConfigError(
          fmt::format("{}: {} must be {}, got {}.", where, option.name, range_text(option), to_text(value)));
    }
  };
  if (const auto* integer = std::get_if<int64_t>(&value)) check_number(static_cast<double>(*integer));
  if (const auto* number = std::get_if<double>(&value)) {
    if (!std::isfinite(*number)) {
      throw ConfigError(fmt::format("{}: {} must be a finite number, got {}.", where, option.name, *number));
    }
    check_number(*number);
  }
  if (const auto* texts = std::get_if<std::vector<std::string>>(&value))
    for (const std::string& one : *texts) require_unmasked(option, one, where);
  const auto* text = std::get_if<std::string>(&value);
  if (text) require_unmasked(option, *text, where);
  if (text && !option.allowed.empty() &&
      std::find(option.allowed.begin(), option.allowed.end(), *text) == option.allowed.end()) {
    const std::string hint = old_value_text(option.name, *text, option.allowed);
    throw ConfigError(fmt::format("{}: {} must be {}, got '{}'{}{}.", where, option.name, range_text(option),
                                  shown_text(option, *text), hint.empty() ? "" : "; ", hint));
  }
}

OptionType type_of(const OptionValue& value) {
  MOX_ASSERT(value.index() > 0, "a value is there");
  constexpr OptionType kTypes[] = {OptionType::kBool,      OptionType::kInteger,     OptionType::kNumber,
                                   OptionType::kString,    OptionType::kIntegerList, OptionType::kNumberList,
                                   OptionType::kStringList};
  static_assert(std::size(kTypes) + 1 == std::variant_size_v<OptionValue>);
  return kTypes[value.index() - 1];
}

bool holds_type(OptionType type, const OptionValue& value) {
  const OptionType held = type_of(value);
  if (type == OptionType::kNumberOrString) return held == OptionType::kNumber || held == OptionType::kString;
  return held == type;
}

OptionValue to_stored(OptionType type, OptionValue value) {
  const auto* integer = std::get_if<int64_t>(&value);
  if (integer && (type == OptionType::kNumber || type == OptionType::kNumberOrString)) {
    return static_cast<double>(*integer);
  }
  return value;
}

std::string_view type_name(OptionType type) {
  switch (type) {
    case OptionType::kBool:
      return "bool";
    case OptionType::kInteger:
      return "integer";
    case OptionType::kNumber:
      return "number";
    case OptionType::kString:
      return "text";
    case OptionType::kNumberOrString:
      return "number or text";
    case OptionType::kIntegerList:
      return "list of integers";
    case OptionType::kNumberList:
      return "list of numbers";
    case OptionType::kStringList:
      return "list of texts";
  }
  return "";
}

std::string_view expectation(OptionType type) {
  switch (type) {
    case OptionType::kBool:
      return "true or false";
    case OptionType::kInteger:
      return "an integer (digits only)";
    case OptionType::kNumber:
      return "a finite number";
    case OptionType::kString:
      return "text";
    case OptionType::kNumberOrString:
      return "a number or text";
    case OptionType::kIntegerList:
      return "a list of integers";
    case OptionType::kNumberList:
      return "a list of numbers";
    case OptionType::kStringList:
      return "a list of texts";
  }
  return "";
}

std::string shown_text(const Option& option, std::string_view text) {
  return option.secret ? std::string(file::kMask) : file::masked_address(text);
}

std::string shown_value(const Option& option, const OptionValue& value) {
  return shown_text(option, to_text(value));
}

std::string to_text(const OptionValue& value) {
  return std::visit(
      Overloaded{
          [](std::monostate) -> std::string { return ""; },
          [](bool flag) -> std::string { return flag ? "true" : "false"; },
          [](int64_t number) { return std::to_string(number); },
          [](double number) { return number_text(number); },
          [](const std::string& text) { return text; },
          [](const std::vector<int64_t>& list) { return fmt::format("{}", fmt::join(list, ",")); },
          [](const std::vector<double>& list) { return join(list, ",", number_text); },
          [](const std::vector<std::string>& list) { return fmt::format("{}", fmt::join(list, ",")); },
      },
      value);
}

std::string to_yaml(const OptionValue& value) {
  return std::visit(
      Overloaded{
          [](const std::string& text) { return masked_yaml(text); },
          [](const std::vector<int64_t>& list) { return fmt::format("[{}]", fmt::join(list, ", ")); },
          [](const std::vector<double>& list) { return "[" + join(list, ", ", number_text) + "]"; },
          [](const std::vector<std::string>& list) { return "[" + join(list, ", ", masked_yaml) + "]"; },
          [&](const auto&) { return to_text(value); },
      },
      value);
}

std::string range_text(const Option& option) {
  if (!option.allowed.empty()) {
    std::string text;
    for (size_t i = 0; i < option.allowed.size(); ++i) {
      if (i > 0) text += i + 1 == option.allowed.size() ? " or " : ", ";
      text += option.allowed[i];
    }
    if (option.type == OptionType::kNumberOrString && option.minimum && option.maximum)
      return fmt::format("{} to {}, or {}", *option.minimum, *option.maximum, text);
    return text;
  }
  if (option.minimum && option.maximum) return fmt::format("{} to {}", *option.minimum, *option.maximum);
  if (option.minimum) return fmt::format("at least {}", *option.minimum);
  if (option.maximum) return fmt::format("at most {}", *option.maximum);
  return "";
}

}  // namespace mox::internal
