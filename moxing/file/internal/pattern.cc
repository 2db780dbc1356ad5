#include "moxing/file/internal/pattern.h"

#include <cstddef>

namespace mox::file::internal {
namespace {

// Takes one item that stands for one byte off the pattern; whether `byte` is one that it stands for.
bool take_byte(std::string_view& pattern, char byte) {
  const char first = pattern.front();
  pattern.remove_prefix(1);
  if (first == '?') return true;
  if (first == '\\' && !pattern.empty()) {
    const char literal = pattern.front();
    pattern.remove_prefix(1);
    return literal == byte;
  }
  if (first != '[') return first == byte;
  const bool negated = pattern.starts_with('!') || pattern.starts_with('^');
  const size_t begin = negated ? 1 : 0;
  const size_t end = pattern.find(']', begin + 1);  // a "]" at the begin is one of the bytes
  if (end == std::string_view::npos) return byte == '[';
  const std::string_view set = pattern.substr(begin, end - begin);
  bool inside = false;
  for (size_t i = 0; i < set.size(); ++i) {
    const auto low = static_cast<unsigned char>(set[i]);
    auto high = low;
    if (i + 2 < set.size() && set[i + 1] == '-') {
      high = static_cast<unsigned char>(set[i + 2]);
      i += 2;
    }
    const auto value = static_cast<unsigned char>(byte);
    inside = inside || (low <= value && value <= high);
  }
  pattern.remove_prefix(end + 1);
  return inside != negated;
}

}  // namespace

bool is_pattern(std::string_view name) { return name.find_first_of("*?[\\") != std::string_view::npos; }

bool matches_pattern(std::string_view name, std::string_view pattern) {
  if (name.starts_with('.') && !pattern.starts_with('.') && !pattern.starts_with("\\.")) return false;
  // On a mismatch, the last "*" takes one byte more.
  bool star = false;
  std::string_view after_star, name_at_star;
  while (true) {
    if (!pattern.empty() && pattern.front() == '*') {
      star = true;
      pattern.remove_prefix(1);
      after_star = pattern;
      name_at_star = name;
      continue;
    }
    if (name.empty() && pattern.empty()) return true;
    if (!name.empty() && !pattern.empty()) {
      std::string_view rest = pattern;
      if (take_byte(rest, name.front())) {
        pattern = rest;
        name.remove_prefix(1);
        continue;
      }
    }
    if (!star || name_at_star.empty()) return false;
    name_at_star.remove_prefix(1);
    name = name_at_star;
    pattern = after_star;
  }
}

}  // namespace mox::file::internal
