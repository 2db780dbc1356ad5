// Which samples of a set can be read, found out by reading all of them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runtime/base/source_location.h"

namespace mox::data::internal {

// The numbers below `count` for which `can_read`, which is called from several threads at once, is true, in
// ascending order; `will_read` is told of a number before. Throws what `can_read` throws, with `set` and
// `where`, the user's call, named.
std::vector<int64_t> readable_samples(int64_t count, const std::function<bool(int64_t)>& can_read,
                                      const std::function<void(int64_t)>& will_read, const std::string& set,
                                      SourceLocation where);

}  // namespace mox::data::internal
