#include "moxing/file/jobs/internal/others_files.h"

#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <utility>

#include "moxing/file/copy.h"
#include "moxing/file/jobs/internal/place.h"
#include "moxing/file/s3/etag.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/log.h"

namespace mox::file::internal {
namespace {

std::optional<Stat> object_at(const std::string& url) {
  try {
    Stat found = file::stat(url);
    if (!found.is_directory) return found;
  } catch (const NotFound&) {
  }
  return std::nullopt;
}

// Some stores list an object that was uploaded in parts with another ETag than they send it with, and what
// was fetched is known by the former.
bool is_listed_as(const std::string& url, const std::string& etag) {
  const size_t slash = url.rfind('/');
  for (const DirectoryEntry& entry : scan_dir(url.substr(0, slash), {.skip_dir = true}))
    if (entry.name == url.substr(slash + 1)) return s3::same_version(entry.stat.etag, etag);
  return false;
}

}  // namespace

OthersFiles::OthersFiles(std::string directory, std::string url)
    : directory_(std::move(directory)), url_(std::move(url)), aside_(aside_of(directory_)) {}

void OthersFiles::keep(const std::string& name, const StoredFile* last) {
  const std::string there = url_ + "/" + name, here = directory_ + "/" + name;
  const std::optional<Stat> found = object_at(there);
  if (!found || found->etag.empty()) return;  // or of a store that knows no versions
  if (last && (s3::same_version(last->etag, found->etag) || is_listed_as(there, last->etag))) return;
  try {
    if (is_there_as_file(here) && begins_with_stored(there, *found, here)) return;
    copy(there, aside_ + "/" + name, {.durable = true});
  } catch (const NotFound&) {
    if (exists(there)) throw;
    return;  // nothing is lost of what was deleted meanwhile
  }
  kept_.push_back(name);
}

void OthersFiles::say() {
  std::vector<std::string> names;
  for (std::string& name : std::exchange(kept_, {}))
    if (said_.insert(name).second) names.push_back(std::move(name));
  if (names.empty()) return;
  log_warning(fmt::format(
      "'{}' had other content of {} than this machine has ever sent there: those of this run take "
      "its place, and what was there is in '{}'. Is another run going on there? Give each a "
      "train_url of its own",
      url_, some_of(names), aside_));
}

}  // namespace mox::file::internal
