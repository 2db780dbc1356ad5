#include "moxing/file/jobs/staging.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "moxing/file/copy.h"
#include "moxing/file/file.h"
#include "moxing/file/jobs/internal/own_directory.h"
#include "moxing/file/jobs/internal/place.h"
#include "runtime/base/error.h"

namespace mox::file {
namespace {

std::string new_directory(const std::string& places) {
  internal::make_safe_directory(places);
  std::string name = places + "/staging-" + std::string(6, 'X');  // which mkdtemp replaces
  if (!::mkdtemp(name.data()))
    throw IoError(fmt::format("cannot make a directory in '{}': {}", places, std::strerror(errno)));
  return name;
}

}  // namespace

Staging::Staging(const std::string& url, const std::string& places) {
  if (!is_remote(url)) {
    path_ = local_path(url);
    return;
  }
  const size_t slash = url.rfind('/');
  const std::string name = url.substr(slash + 1);
  destination_ = url.substr(0, slash);
  if (name.empty() || destination_.ends_with('/'))
    throw InvalidArgument(
        fmt::format("'{}' names no file: expected s3://BUCKET/NAME or obs://BUCKET/NAME", url));
  if (is_directory(url)) throw InvalidArgument(fmt::format("'{}' is a directory, not a file", url));
  internal::require_bucket(url);
  directory_ = new_directory(places);
  path_ = directory_ + "/" + name;
}

Staging::~Staging() {
  std::error_code stays;  // what cannot be removed is no fault of what was written
  if (!directory_.empty() && !keeps_) std::filesystem::remove_all(directory_, stays);
}

void Staging::fetch(const std::string& name) const {
  const std::string url = destination_ + "/" + name;
  if (!directory_.empty() && exists(url)) copy(url, directory_ + "/" + name);
}

void Staging::send() {
  if (directory_.empty()) return;
  keeps_ = true;
  try {
    copy_parallel(directory_, destination_,
                  internal::logged_copy(fmt::format("copying '{}' to '{}'", directory_, destination_)));
  } catch (const Error& error) {
    throw IoError(
        fmt::format("what was written could not be copied to '{}': {}. It is in '{}'; copy it with "
                    "mox file cp -r",
                    destination_, error.what(), directory_));
  }
  keeps_ = false;
}

}  // namespace mox::file
