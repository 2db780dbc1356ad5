#include "moxing/config/internal/expansion.h"

#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

#include "runtime/base/error.h"

namespace mox::internal {
namespace {

bool begins_name(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_'; }

// The length of the name that `text` begins with, as shells have them: 0 if there is none.
size_t name_length(std::string_view text) {
  if (text.empty() || !begins_name(text[0])) return 0;
  size_t length = 1;
  while (length < text.size() && (begins_name(text[length]) || (text[length] >= '0' && text[length] <= '9')))
    ++length;
  return length;
}

// Whether `text` is NAME or NAME/...
bool is_first_name(std::string_view text) {
  const size_t length = name_length(text);
  return length > 0 && (length == text.size() || text[length] == '/');
}

struct Place {
  const std::string& where;
  const std::string& option;
  const std::string& text;
  const std::string& shown;

  [[noreturn]] void fail(std::string_view reason) const {
    throw ConfigError(fmt::format("{}: {} is '{}', but {}.", where, option, shown, reason));
  }

  std::string variable(const std::string& name) const {
    const char* value = std::getenv(name.c_str());
    if (value && *value) return value;
    const char* trouble = value ? "empty" : "not set";
    // Of a text that is not shown, no part is.
    if (shown != text)
      fail(
          fmt::format("an environment variable that it names is {}; set it. For a text that begins with $ "
                      "write $$, and $${{ for ${{",
                      trouble));
    fail(fmt::format("the environment variable {} is {}; set it, or write the path out", name, trouble));
  }
};

}  // namespace

std::string expanded(const std::string& text, const std::string& where, const std::string& option,
                     const std::string& shown) {
  const Place place{where, option, text, shown};
  std::string result;
  std::string_view rest = text;
  if (rest.starts_with('~')) {
    if (rest.size() == 1 || rest[1] == '/') {
      result = place.variable("HOME");
      rest.remove_prefix(1);
    } else if (is_first_name(rest.substr(1))) {
      place.fail(
          fmt::format("only ~ itself is known, the home directory of the one who runs the program; "
                      "write the path out (or ./{} for a path of that name)",
                      shown));
    }
  } else if (rest.starts_with("$$") && is_first_name(rest.substr(2))) {
    result = "$";
    rest.remove_prefix(2);
  } else if (rest.starts_with('$') && is_first_name(rest.substr(1))) {
    const size_t length = name_length(rest.substr(1));
    result = place.variable(std::string(rest.substr(1, length)));
    rest.remove_prefix(1 + length);
  }
  for (size_t at; (at = rest.find("${")) != std::string_view::npos;) {
    result += rest.substr(0, at);
    if (at > 0 && rest[at - 1] == '$') {
      result += '{';  // "$${": its first $ is there
      rest.remove_prefix(at + 2);
      continue;
    }
    rest.remove_prefix(at + 2);
    const size_t length = name_length(rest);
    if (length == 0 || length == rest.size() || rest[length] != '}')
      place.fail(
          "${ must be followed by the name of an environment variable and }; for the text itself write $${");
    result += place.variable(std::string(rest.substr(0, length)));
    rest.remove_prefix(length + 1);
  }
  return result += rest;
}

std::string unexpanded(const std::string& text) {
  std::string result;
  std::string_view rest = text;
  if (rest.starts_with('~') && (rest.size() == 1 || rest[1] == '/' || is_first_name(rest.substr(1)))) {
    result = "./";
  } else if (rest.starts_with("$") && is_first_name(rest.substr(rest.starts_with("$$") ? 2 : 1))) {
    result = "$";
  }
  for (size_t at; (at = rest.find("${")) != std::string_view::npos;) {
    result += rest.substr(0, at);
    result += "$${";
    rest.remove_prefix(at + 2);
  }
  return result += rest;
}

}  // namespace mox::internal
