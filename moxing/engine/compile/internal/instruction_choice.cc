#include "moxing/engine/compile/internal/instruction_choice.h"

#include <fmt/format.h>

#include <algorithm>

namespace mox::internal {

InstructionChoice choose_instruction_set(std::span<const RankInstructions> ranks,
                                         std::optional<InstructionSet> kept, const std::string& path,
                                         bool allow_inexact) {
  const auto described = [&](std::span<const RankInstructions>::iterator it) {
    const std::string_view name = to_string(it->available);
    return ranks.size() == 1 ? fmt::format("this processor has {}", name)
                             : fmt::format("rank {} (host {}) has {}", it - ranks.begin(), it->host, name);
  };
  const auto least = std::ranges::min_element(ranks, {}, &RankInstructions::available);
  const auto most = std::ranges::max_element(ranks, {}, &RankInstructions::available);
  InstructionChoice choice{least->available, {}};
  if (kept && *kept < choice.set && !allow_inexact) choice.set = *kept;
  if (least->available != most->available)
    choice.remarks.push_back(fmt::format("{} instructions, {}: all ranks compute with {}", described(least),
                                         described(most), to_string(choice.set)));
  if (!kept || *kept == least->available) return choice;
  if (*kept > least->available) {
    choice.remarks.push_back(
        fmt::format("'{}' was computed with {} instructions, and {}: the result is as good, but its last "
                    "bits may not be those of an uninterrupted run",
                    path, to_string(*kept), described(least)));
  } else if (allow_inexact) {
    choice.remarks.push_back(
        fmt::format("'{}' was computed with {} instructions; allow_inexact is set, so the run goes on with "
                    "{}: the result is as good, but its last bits are not those of an uninterrupted run",
                    path, to_string(*kept), to_string(choice.set)));
  } else {
    choice.remarks.push_back(
        fmt::format("'{}' was computed with {} instructions, and the run goes on with them, which keeps its "
                    "last bits; {} are available, and --allow_inexact uses them",
                    path, to_string(*kept), to_string(least->available)));
  }
  return choice;
}

}  // namespace mox::internal
