#include "moxing/file/masked_address.h"

#include <algorithm>

namespace mox::file {
namespace {

constexpr std::string_view kSpaces = " \t\r\n";
constexpr std::string_view kBehindScheme = "://";

bool is_port(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// Where in `rest`, which follows a scheme, the host begins; 0 if nobody is named before it. The host follows
// the last @ of the part before the path. A word that holds a slash as it is cuts that part short, which
// shows in a port that is none: then the last @ of all counts, for rather a path is masked than a secret
// shown.
size_t host_behind_scheme(std::string_view rest) {
  const std::string_view authority = rest.substr(0, rest.find_first_of("/?#"));
  size_t at = authority.rfind('@');
  const size_t colon = authority.rfind(':');
  if (at == std::string_view::npos && colon != std::string_view::npos &&
      !is_port(authority.substr(colon + 1)))
    at = rest.rfind('@');
  return at == std::string_view::npos ? 0 : at + 1;
}

// The same without a scheme, where only user:word@host is an address.
size_t host_of_login(std::string_view text) {
  const size_t colon = text.find(':'), at = text.rfind('@');
  const bool is_login = colon != std::string_view::npos && at != std::string_view::npos && colon > 0 &&
                        at > colon + 1 && at + 1 < text.size() &&
                        text.substr(0, colon).find_first_of("/@") == std::string_view::npos;
  return is_login ? at + 1 : 0;
}

// Text without spaces, which may hold several addresses.
std::string masked_word(std::string_view word) {
  size_t scheme = word.find(kBehindScheme);
  const std::string_view before = word.substr(0, scheme);
  const size_t login = host_of_login(before);
  std::string masked = login > 0 ? std::string(kMask) + '@' : "";
  masked += before.substr(login);
  while (scheme != std::string_view::npos) {
    word.remove_prefix(scheme + kBehindScheme.size());
    const size_t host = host_behind_scheme(word);
    masked += kBehindScheme;
    if (host > 0) masked.append(kMask).append("@");
    word.remove_prefix(host);
    scheme = word.find(kBehindScheme);
    masked += word.substr(0, scheme);
  }
  return masked;
}

}  // namespace

std::string masked_address(std::string_view text) {
  std::string masked;
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of(kSpaces), text.size());
    masked += masked_word(text.substr(0, end));
    masked += text.substr(end, 1);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return masked;
}

bool is_masked_address(std::string_view text) {
  const std::string mark = std::string(kMask) + '@';
  const size_t at = text.find(mark);
  return at != std::string_view::npos &&
         (at == 0 || text[at - 1] == '/' || kSpaces.find(text[at - 1]) != std::string_view::npos);
}

}  // namespace mox::file
