// Names as people write them: in letters of any size, mistyped, of things that do not exist.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mox::internal {

// `text` with small letters for the large ones of ASCII. No locale has a say in it, as it has in
// std::tolower: in Turkish that leaves I as it is.
std::string lower_case(std::string_view text);

// The known name that differs in the size of its letters alone, else the one with the smallest Levenshtein
// distance to `name`; empty if all are too far to be a slip of the keyboard (farther than a third of the
// longer name, at least 2, or with no letter in common).
std::string nearest_name(std::string_view name, std::span<const std::string> known);

// "unknown optimizer "adma": did you mean "adam"? Known: adadelta, adam"
std::string unknown_name_message(std::string_view kind, std::string_view name,
                                 const std::vector<std::string>& known);

// "a, b, c, d, e and 7 more"; "(none)" of none.
std::string first_names(std::span<const std::string> names);

}  // namespace mox::internal
