#include "moxing/json/parse_json.h"

#include <locale.h>

#include <algorithm>
#include <cstdlib>

namespace mox {

double json_number(const std::string& text) {
  static const locale_t c = ::newlocale(LC_ALL_MASK, "C", nullptr);
  std::string number = text;
  // The sign may be that of any locale, and the first byte of several.
  std::ranges::replace_if(
      number,
      [](char letter) { return std::string_view("+-.eE0123456789").find(letter) == std::string_view::npos; },
      '.');
  return ::strtod_l(number.c_str(), nullptr, c);
}

}  // namespace mox
