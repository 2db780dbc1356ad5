// White space between the tokens of a JSON text, put in and taken out: the text itself stays as
// it was written.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mox::internal {

// `json`, which is valid, with each member and element on a line of its own, two columns further in than what
// holds it: the layout of nlohmann::json's dump(2), of a value that stands `columns` in. An empty object or
// array stays on its line.
std::string indented(std::string_view json, int columns);

// `json` without white space outside of strings.
std::string compact(std::string_view json);

// The members of a compact object: each key as it is written, quotes included, and its value.
std::vector<std::pair<std::string_view, std::string_view>> members_of(std::string_view object);

}  // namespace mox::internal
