// Error texts for names that do not exist.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mox::internal {

// The known name with the smallest Levenshtein distance to `name`; empty if all are too far to be a slip of
// the keyboard (farther than a third of the longer name, at least 2).
std::string nearest_name(std::string_view name, std::span<const std::string> known);

// "unknown optimizer "adma": did you mean "adam"? Known: adadelta, adam"
std::string unknown_name_message(std::string_view kind, std::string_view name,
                                 const std::vector<std::string>& known);

// "a, b, c, d, e and 7 more"; "(none)" of none.
std::string first_names(std::span<const std::string> names);

}  // namespace mox::internal
