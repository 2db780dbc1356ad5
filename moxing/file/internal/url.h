// The names of files: local paths and URLs, taken apart.
#pragma once

#include <string>
#include <string_view>

namespace mox::file::internal {

struct Url {
  bool remote = false;
  std::string scheme;  // "s3" or "obs"; "" for a local path
  std::string bucket;  // of a remote one
  std::string path;    // the local path; or the key, "" for the whole bucket
  bool operator==(const Url&) const = default;
};

// Throws InvalidArgument for what is neither (file.h).
Url parse_url(std::string_view text);

// What parse_url takes.
std::string to_string(const Url& url);

// The name below a directory. `name` has no slash at its begin.
Url join(const Url& directory, std::string_view name);

// A directory below another. In a store its name may be empty or end in a slash, as "a//b" lies in one: it
// has one more slash then, without which it would be the directory that it lies in.
Url join_directory(const Url& directory, std::string_view name);

// As a directory: a key with a slash at its end, "" for a bucket; a local path without one.
Url as_directory(Url url);
// Without slashes at the end, so that it names a file.
Url without_slash(Url url);

}  // namespace mox::file::internal
