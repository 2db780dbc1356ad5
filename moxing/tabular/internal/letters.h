// Text as a person sees it, whatever the bytes are. Of UTF-8; without a locale.
#pragma once

#include <string>
#include <string_view>

namespace mox::internal {

// Spaces of every kind as that of ASCII, without characters that nobody sees (U+200B, U+FEFF, U+00AD ...),
// and letters with accents of Latin, Greek and Cyrillic as the letter and what is put on it: in one of the
// two ways in which Unicode writes them.
std::string as_seen(std::string_view text);

// What as_seen makes of it, in small letters, with single spaces and none around.
std::string folded(std::string_view text);

// Spaces but that of ASCII, what nobody sees and accents that are characters of their own as \u{200b}: so
// that two texts which look the same do so no more.
std::string spelled_out(std::string_view text);

}  // namespace mox::internal
