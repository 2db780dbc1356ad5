// Messages about the names of options that do not exist.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mox::internal {

// "the nearest known KIND is 'PREFIXoptimizer.name'", or that none is near. The part of a known name behind
// its last dot counts as its name too, so "learning_rate" finds "optimizer.learning_rate". A name that other
// frameworks have says what it is called here (old_names.h).
std::string nearest_option_text(std::string_view kind, std::string_view prefix, std::string_view name,
                                const std::vector<std::string>& known);

}  // namespace mox::internal
