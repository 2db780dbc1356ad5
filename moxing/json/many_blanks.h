// Blanks in a JSON text that the library's parser would blow up in the message of an error.
#pragma once

#include <string_view>

namespace mox {

// Whether the text has thousands of blanks without a text or a number among them. For the message of an error
// the parser keeps what it has read since the last of these, and writes an end of a line or a tabulator as
// eight characters: such a text is to be refused before it is parsed.
bool has_many_blanks(std::string_view text);

}  // namespace mox
