#include "moxing/checkpoint/name_patterns.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "runtime/base/error.h"
#include "runtime/base/nearest_name.h"

namespace mox {
namespace {

// std::regex calls itself for each character of what it looks at, on the stack.
constexpr size_t kLongestName = 4096;

std::regex expression_of(const std::string& option, const std::string& pattern) {
  if (pattern.empty())
    throw InvalidArgument(fmt::format(
        "{}: a pattern is empty, and would match every name; leave it out, or write .* if that is meant",
        option));
  try {
    return std::regex(pattern);
  } catch (const std::regex_error& error) {
    throw InvalidArgument(
        fmt::format("{}: '{}' is no regular expression: {}", option, pattern, error.what()));
  }
}

void require_short(const std::string& option, std::string_view name) {
  if (name.size() > kLongestName)
    throw DataError(
        fmt::format("{}: a variable's name has {} bytes; patterns are for names of up to {}: '{}...'", option,
                    name.size(), kLongestName, name.substr(0, 40)));
}

[[noreturn]] void refuse_unused(const std::string& option, const std::string& pattern,
                                std::span<const std::string> names, std::string_view whose) {
  throw InvalidArgument(fmt::format(
      "{}: '{}' is found in none of the {} names of {}: {}. Remove it, or write what it was to match", option,
      pattern, names.size(), whose, internal::first_names(names)));
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

}  // namespace

NamePatterns::NamePatterns(std::string option, const std::vector<std::string>& patterns)
    : option_(std::move(option)) {
  for (const std::string& text : patterns) patterns_.push_back({text, expression_of(option_, text)});
}

bool NamePatterns::match(std::string_view name) const {
  require_short(option_, name);
  return std::ranges::any_of(patterns_, [&](const Pattern& pattern) {
    return std::regex_search(name.begin(), name.end(), pattern.expression);
  });
}

void NamePatterns::require_used(std::span<const std::string> names, std::string_view whose) const {
  for (const Pattern& pattern : patterns_)
    if (std::ranges::none_of(names, [&](const std::string& name) {
          require_short(option_, name);
          return std::regex_search(name, pattern.expression);
        }))
      refuse_unused(option_, pattern.text, names, whose);
}

NameReplacements::NameReplacements(std::string option, const Pairs& pairs) : option_(std::move(option)) {
  for (const auto& [pattern, replacement] : pairs)
    pairs_.push_back({pattern, replacement, expression_of(option_, pattern)});
}

std::vector<std::string> NameReplacements::apply(std::span<const std::string> names,
                                                 std::string_view whose) const {
  std::vector<std::string> result(names.begin(), names.end());
  for (const Pair& pair : pairs_) {
    bool is_used = false;
    for (std::string& name : result) {
      require_short(option_, name);
      if (!std::regex_search(name, pair.expression)) continue;
      is_used = true;
      name = std::regex_replace(name, pair.expression, pair.replacement);
      if (name.empty())
        throw InvalidArgument(
            fmt::format("{}: '{} -> {}' leaves a name empty", option_, pair.text, pair.replacement));
    }
    if (!is_used) refuse_unused(option_, pair.text, result, whose);
  }
  std::map<std::string_view, size_t> first;
  for (size_t i = 0; i < result.size(); ++i)
    if (const auto [entry, is_new] = first.emplace(result[i], i); !is_new)
      throw InvalidArgument(fmt::format("{}: '{}' and '{}' of {} both become '{}'", option_,
                                        names[entry->second], names[i], whose, result[i]));
  return result;
}

NameReplacements::Pairs parse_replacements(std::string_view option, const std::vector<std::string>& texts) {
  NameReplacements::Pairs pairs;
  for (const std::string& text : texts) {
    const size_t arrow = text.find("->");
    if (arrow == std::string::npos)
      throw InvalidArgument(fmt::format("{}: expected PATTERN -> REPLACEMENT, got '{}'", option, text));
    pairs.emplace_back(trimmed(std::string_view(text).substr(0, arrow)),
                       trimmed(std::string_view(text).substr(arrow + 2)));
  }
  return pairs;
}

std::vector<std::string> replacement_texts(const NameReplacements::Pairs& pairs) {
  std::vector<std::string> texts;
  for (const auto& [pattern, replacement] : pairs)
    texts.push_back(fmt::format("{} -> {}", pattern, replacement));
  return texts;
}

}  // namespace mox
