#include "moxing/file/internal/url.h"

#include <fmt/format.h>

#include "moxing/file/masked_address.h"
#include "runtime/base/error.h"
#include "runtime/base/nearest_name.h"

namespace mox::file::internal {
namespace {

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// The scheme before "://", in lower case; "" if the text does not begin with one.
std::string scheme_of(std::string_view text, size_t colon) {
  const std::string_view scheme = text.substr(0, colon);
  for (const char c : scheme)
    if (!is_letter_or_digit(c) && c != '+' && c != '-' && c != '.') return "";
  return mox::internal::lower_case(scheme);
}

// A bucket goes into the host and the path of requests. Stores take fewer names than these.
void require_bucket(const std::string& bucket, std::string_view text) {
  bool good = !bucket.empty() && bucket.size() <= 255 && bucket != "." && bucket != "..";
  for (const char c : bucket) good = good && (is_letter_or_digit(c) || c == '.' || c == '-' || c == '_');
  if (!good)
    throw InvalidArgument(fmt::format(
        "'{}' names no bucket: expected s3://BUCKET/KEY with a bucket of letters, digits, '.', '-' and '_'",
        masked_address(text)));
}

Url parse_remote(std::string_view text, std::string scheme, std::string_view rest) {
  const size_t slash = rest.find('/');
  Url url{
      .remote = true, .scheme = std::move(scheme), .bucket = std::string(rest.substr(0, slash)), .path = {}};
  require_bucket(url.bucket, text);
  if (slash != std::string_view::npos) url.path = rest.substr(slash + 1);
  if (url.path.size() > 1024)
    throw InvalidArgument(fmt::format("the key of '{}...' has {} bytes; a store takes at most 1024",
                                      masked_address(text).substr(0, 80), url.path.size()));
  return url;
}

}  // namespace

Url parse_url(std::string_view text) {
  if (text.empty()) throw InvalidArgument("the name of a file is empty; expected a path or s3://BUCKET/KEY");
  if (text.find('\0') != std::string_view::npos) {
    const std::string shown = masked_address(text);  // of the whole: an @ may follow the zero byte
    throw InvalidArgument(
        fmt::format("the name '{}...' of a file has a zero byte in it", shown.substr(0, shown.find('\0'))));
  }
  const size_t colon = text.find(':');
  const std::string scheme = colon == std::string_view::npos ? "" : scheme_of(text, colon);
  const std::string_view rest = colon == std::string_view::npos ? text : text.substr(colon + 1);
  const bool store = scheme == "s3" || scheme == "obs";
  if (scheme.empty() || !rest.starts_with("//")) {
    if (store)
      throw InvalidArgument(
          fmt::format("'{}' has {} where '{}://' has two; './{}' would be a local file", masked_address(text),
                      rest.starts_with('/') ? "one slash" : "no slash", scheme, masked_address(text)));
    if (text.starts_with("s3//") || text.starts_with("obs//"))
      throw InvalidArgument(
          fmt::format("'{}' has no colon where '{}://' has one; './{}' would be a local file",
                      masked_address(text), text.substr(0, text.find('/')), masked_address(text)));
    return {.remote = false, .scheme = {}, .bucket = {}, .path = std::string(text)};
  }
  if (store) return parse_remote(text, scheme, rest.substr(2));
  if (scheme != "file")
    throw InvalidArgument(
        fmt::format("'{}': there is no '{}://' here; expected a path, file://, s3:// or obs://",
                    masked_address(text), scheme));
  std::string_view path = rest.substr(2);
  if (path.starts_with("localhost/")) path.remove_prefix(std::string_view("localhost").size());
  if (!path.starts_with('/'))
    throw InvalidArgument(
        fmt::format("'{}' names a file of another host; a local one is file:///PATH", masked_address(text)));
  return {.remote = false, .scheme = {}, .bucket = {}, .path = std::string(path)};
}

std::string to_string(const Url& url) {
  return url.remote ? fmt::format("{}://{}/{}", url.scheme, url.bucket, url.path) : url.path;
}

Url join(const Url& directory, std::string_view name) {
  Url url = as_directory(directory);
  if (!url.remote && !url.path.ends_with('/')) url.path += '/';
  url.path += name;
  return url;
}

Url join_directory(const Url& directory, std::string_view name) {
  Url url = join(directory, name);
  if (url.remote && (name.empty() || name.ends_with('/'))) url.path += '/';
  return url;
}

Url as_directory(Url url) {
  if (url.remote) {
    if (!url.path.empty() && !url.path.ends_with('/')) url.path += '/';
    return url;
  }
  return without_slash(std::move(url));
}

Url without_slash(Url url) {
  while (url.path.ends_with('/') && (url.remote || url.path.size() > 1)) url.path.pop_back();
  return url;
}

}  // namespace mox::file::internal
