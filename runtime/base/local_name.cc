#include "runtime/base/local_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>

namespace mox {
namespace {

// Of RFC 3986.
bool is_scheme(std::string_view text) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  return !text.empty() && is_letter(text.front()) && std::ranges::all_of(text, [&](char c) {
    return is_letter(c) || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
  });
}

}  // namespace

void throw_alike(const IoError& error, const std::string& text) {
  if (dynamic_cast<const UnusablePlace*>(&error)) throw UnusablePlace(text);
  throw IoError(text);
}

bool is_unusable_place(int error) {
  constexpr std::array kLasting{EACCES, EEXIST, ELOOP, ENAMETOOLONG, ENOENT, ENOTDIR, EPERM, EROFS};
  return std::ranges::find(kLasting, error) != kLasting.end();
}

void require_local_name(const std::filesystem::path& path) {
  const std::string& name = path.native();
  const size_t end = name.find("://");
  if (end == std::string::npos || !is_scheme(std::string_view(name).substr(0, end))) return;
  throw InvalidArgument(
      fmt::format("'{}' is no path on this machine, and one is needed here. Copy the file here before it is "
                  "read, or there after it was written (mox file cp, or mox::file::copy)",
                  name));
}

}  // namespace mox
