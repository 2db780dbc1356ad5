#include "ops/support/named_inputs.h"

#include <algorithm>

namespace mox::named_inputs {
namespace {

constexpr const char* kNames = "inputs";

}  // namespace

int position_of(std::string_view name, size_t order, const Attributes& attributes, size_t count) {
  if (!attributes.has(kNames)) return order < count ? static_cast<int>(order) : -1;
  int position = 0;
  std::string_view rest = attributes.get<std::string>(kNames);
  while (!rest.empty()) {
    const std::string_view next = rest.substr(0, rest.find(' '));
    if (next == name) return position;
    rest.remove_prefix(std::min(rest.size(), next.size() + 1));
    ++position;
  }
  return -1;
}

void set_names(Attributes& attributes, const std::vector<std::string_view>& names) {
  std::string text;
  for (const std::string_view name : names) {
    if (!text.empty()) text += ' ';
    text += name;
  }
  attributes.set(kNames, std::move(text));
}

}  // namespace mox::named_inputs
