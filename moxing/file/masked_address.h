// Addresses as they may be shown: in messages, on the terminal, in files that a run keeps.
#pragma once

#include <string>
#include <string_view>

namespace mox::file {

// What stands for a secret wherever one would be shown.
inline constexpr std::string_view kMask = "***";

// `text` with the mask in place of what an address tells its host about who asks: "http://user:word@host/a"
// and "http://key@host/a" become "http://***@host/a", "user:word@host" becomes "***@host",
// "http://host/a?token=secret" becomes "http://host/a?token=***"; several addresses in one text, with commas
// or spaces between them, are each masked. Any other text is unchanged. What may be a user's name and word,
// though it may as well be a host, its port and an @ in the path, is masked:
// "http://***@2x" for "http://host:80/a@2x".
std::string masked_address(std::string_view text);

// Whether an address in `text` was masked: it no longer says who asks.
bool is_masked_address(std::string_view text);

}  // namespace mox::file
