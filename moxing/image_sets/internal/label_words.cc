#include "moxing/image_sets/internal/label_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "runtime/base/log.h"
#include "runtime/text/printable.h"
#include "runtime/text/utf8.h"

namespace mox::data::internal {
namespace {

constexpr std::string_view kBlanks = " \t\r\f\v";

std::string_view without_blanks(std::string_view text) {
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) + 1 - first);
}

// In small letters of ASCII (a locale may have others), with single spaces and none around.
std::string folded(std::string_view name) {
  std::string result;
  for (const char letter : without_blanks(name)) {
    const bool is_blank = kBlanks.find(letter) != std::string_view::npos;
    if (is_blank && result.ends_with(' ')) continue;
    const bool is_large = letter >= 'A' && letter <= 'Z';
    result += is_blank ? ' ' : is_large ? static_cast<char>(letter - 'A' + 'a') : letter;
  }
  return result;
}

}  // namespace

void for_each_label(std::string_view content, FunctionRef<void(std::string_view label, size_t line)> take) {
  content = without_byte_order_mark(content);
  size_t line = 0;
  for (size_t begin = 0; begin < content.size();) {
    const size_t end = std::min(content.find('\n', begin), content.size());
    ++line;
    if (const auto label = without_blanks(content.substr(begin, end - begin)); !label.empty())
      take(label, line);
    begin = end + 1;
  }
}

void warn_of_similar_names(const std::string& directory, const std::vector<std::string>& names) {
  std::unordered_map<std::string, const std::string*> first;
  const std::string *one = nullptr, *other = nullptr;
  size_t pairs = 0;
  for (const std::string& name : names) {
    const auto [found, is_new] = first.emplace(folded(name), &name);
    if (is_new || ++pairs > 1) continue;
    one = found->second;
    other = &name;
  }
  if (pairs == 0) return;
  log_warning(fmt::format(
      "'{}': the classes '{}' and '{}' differ only in case or spaces{}, and are different classes to the "
      "model; write them alike if they mean the same",
      directory, printable(*one), printable(*other),
      pairs > 1 ? fmt::format(" (as {} more do)", pairs - 1) : ""));
}

}  // namespace mox::data::internal
