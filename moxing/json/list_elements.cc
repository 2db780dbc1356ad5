#include "moxing/json/list_elements.h"

#include <algorithm>
#include <cstdint>

#include "runtime/base/error.h"

namespace mox {
namespace {

constexpr std::string_view kBlanks = " \n\t\r";

std::string_view without_blanks(std::string_view text) {
  const size_t begin = std::min(text.find_first_not_of(kBlanks), text.size());
  const size_t end = text.find_last_not_of(kBlanks);
  return text.substr(begin, end == text.npos ? 0 : end + 1 - begin);
}

}  // namespace

size_t for_each_element(std::string_view list, FunctionRef<void(std::string_view element)> take) {
  list = without_blanks(list);
  if (list.size() < 2 || list.front() != '[' || list.back() != ']')
    throw DataError("expected a list of JSON, in [ and ]");
  list = without_blanks(list.substr(1, list.size() - 2));
  if (list.empty()) return 0;
  size_t count = 0, begin = 0;
  int64_t depth = 0;
  bool in_text = false;
  for (size_t i = 0; i < list.size(); ++i) {
    const char letter = list[i];
    if (in_text && letter == '\\') {
      ++i;
    } else if (letter == '"') {
      in_text = !in_text;
    } else if (!in_text && (letter == '[' || letter == '{')) {
      ++depth;
    } else if (!in_text && (letter == ']' || letter == '}')) {
      --depth;
    } else if (!in_text && letter == ',' && depth == 0) {
      take(list.substr(begin, i - begin));
      ++count;
      begin = i + 1;
    }
  }
  take(list.substr(begin));
  return count + 1;
}

}  // namespace mox
