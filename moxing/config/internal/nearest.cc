#include "moxing/config/internal/nearest.h"

#include <fmt/format.h>

#include <algorithm>

#include "moxing/config/internal/old_names.h"
#include "runtime/base/error.h"
#include "runtime/base/nearest_name.h"

namespace mox::internal {

std::string nearest_option_text(std::string_view kind, std::string_view prefix, std::string_view name,
                                const std::vector<std::string>& known) {
  if (std::string text = old_name_text(kind, prefix, name); !text.empty()) return text;
  std::vector<std::string> spellings = known;
  for (const std::string& option : known) spellings.push_back(option.substr(option.rfind('.') + 1));
  const std::string nearest = nearest_name(name, spellings);
  if (nearest.empty()) return fmt::format("no known {} is near to it", kind);
  const auto option = std::find_if(known.begin(), known.end(), [&](const std::string& candidate) {
    return candidate == nearest || candidate.ends_with("." + nearest);
  });
  MOX_ASSERT(option != known.end(), "every spelling comes from a known name");
  return fmt::format("the nearest known {} is '{}{}'", kind, prefix, *option);
}

}  // namespace mox::internal
