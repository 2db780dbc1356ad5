#include "moxing/checkpoint/internal/json_layout.h"

namespace mox::internal {
namespace {

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
bool opens(char c) { return c == '{' || c == '['; }
bool closes(char c) { return c == '}' || c == ']'; }

// The position behind the string that begins at `begin`.
size_t end_of_string(std::string_view json, size_t begin) {
  size_t end = begin + 1;
  while (end < json.size() && json[end] != '"') end += json[end] == '\\' ? 2 : 1;
  return end + 1;
}

}  // namespace

std::string compact(std::string_view json) {
  std::string result;
  for (size_t at = 0; at < json.size();) {
    const size_t next = json[at] == '"' ? end_of_string(json, at) : at + 1;
    if (!is_space(json[at])) result += json.substr(at, next - at);
    at = next;
  }
  return result;
}

std::string indented(std::string_view json, int columns) {
  constexpr size_t kStep = 2;
  const std::string text = compact(json);
  std::string result;
  size_t depth = columns;
  const auto new_line = [&] { result += '\n' + std::string(depth, ' '); };
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    const size_t next = c == '"' ? end_of_string(text, at) : at + 1;
    const bool is_empty = opens(c) && closes(text[next]);
    if (is_empty) {
      result += {c, text[next]};
      at = next + 1;
      continue;
    }
    if (closes(c)) {
      depth -= kStep;
      new_line();
    }
    result += std::string_view(text).substr(at, next - at);
    if (opens(c)) depth += kStep;
    if (opens(c) || c == ',') new_line();
    if (c == ':') result += ' ';
    at = next;
  }
  return result;
}

std::vector<std::pair<std::string_view, std::string_view>> members_of(std::string_view object) {
  std::vector<std::pair<std::string_view, std::string_view>> members;
  size_t at = 1;
  while (at < object.size() && object[at] == '"') {
    const size_t value = end_of_string(object, at) + 1;  // behind the colon
    size_t end = value;
    for (int depth = 0; depth > 0 || (object[end] != ',' && object[end] != '}');) {
      depth += opens(object[end]) ? 1 : closes(object[end]) ? -1 : 0;
      end = object[end] == '"' ? end_of_string(object, end) : end + 1;
    }
    members.emplace_back(object.substr(at, value - 1 - at), object.substr(value, end - value));
    at = end + 1;
  }
  return members;
}

}  // namespace mox::internal
