// Metric::parts of what most metrics come to.
#pragma once

#include <string>
#include <vector>

namespace mox::metrics::internal {

inline std::vector<std::string> one_number() { return {""}; }

}  // namespace mox::metrics::internal
