#include "moxing/file/internal/removal_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/base/error.h"

namespace mox::file::internal {

void RemovalReport::keep(const std::string& name, std::string_view why) {
  kept_.push_back(fmt::format("'{}': {}", name, why));
}

void RemovalReport::throw_if_any(const std::string& top) const {
  if (kept_.empty()) return;
  throw IoError(fmt::format("of '{}', {} could not be removed, everything else was:\n  {}", top, kept_.size(),
                            fmt::join(kept_, "\n  ")));
}

}  // namespace mox::file::internal
