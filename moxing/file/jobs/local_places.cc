#include "moxing/file/jobs/local_places.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>

#include "moxing/file/jobs/internal/place.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/log.h"

namespace mox::file {
namespace {

using internal::kManifest;
using internal::PlaceLock;
namespace fs = std::filesystem;

std::string last_name(std::string url) {
  while (url.ends_with('/')) url.pop_back();
  return url.substr(url.rfind('/') + 1);
}

// What the store has, in one line: another line is another data set.
struct Source {
  std::string identity;
  std::map<std::string, int64_t> files;  // and their sizes
  bool is_directory = true;
};

Source look_at(const std::string& url) {
  Source source;
  Sha256 digest;
  const auto add = [&](const std::string& name, const Stat& stat) {
    source.files[name] = stat.length;
    digest.update(fmt::format("{}\n{} {} {}\n", name, stat.length, stat.etag,
                              stat.etag.empty() ? std::chrono::system_clock::to_time_t(stat.mtime) : 0));
  };
  const Stat stat = file::stat(url);
  source.is_directory = stat.is_directory;
  if (stat.is_directory)
    for (const DirectoryEntry& entry : scan_dir(url, {.recursive = true, .skip_dir = true}))
      add(entry.name, entry.stat);
  else
    add(last_name(url), stat);
  source.identity = digest.hex();
  return source;
}

bool is_there(const std::string& place, const Source& source) {
  try {
    if (read_file(place + ".complete") != source.identity) return false;
    std::map<std::string, int64_t> found;
    for (const DirectoryEntry& entry : scan_dir(place, {.recursive = true, .skip_dir = true}))
      found[entry.name] = entry.stat.length;
    return found == source.files;
  } catch (const NotFound&) {
    return false;
  }
}

void fill(const std::string& url, const std::string& place, const Source& source) {
  fs::remove(place + ".complete");
  const std::string what = fmt::format("'{}' to '{}'", url, place);
  log_info("copying " + what);
  CopyOptions options = internal::logged_copy("copying " + what);
  options.durable = true;
  int64_t unchecked = 0;
  if (source.is_directory) {
    unchecked = sync(url, place, true, options).copied.unchecked;
  } else {
    unchecked = copy(url, place + "/" + last_name(url), options).unchecked;
  }
  if (unchecked)
    log_warning(
        fmt::format("{} files of '{}' were checked by their sizes alone: the store gives no checksum of them",
                    unchecked, url));
  if (look_at(url).identity != source.identity)
    throw IoError(fmt::format("'{}' has changed while it was copied to '{}'; start again when it is complete",
                              url, place));
  write_file_atomically(place + ".complete", source.identity);
}

// Its steps that are complete in the store and not here come here; what other files it has, if `with_files`.
void fetch_checkpoint(const std::string& url, const std::string& directory, int64_t step) {
  const std::string name = fmt::format("checkpoint-{}", step), place = directory + "/" + name;
  if (mox::is_there(place)) return;
  const std::string saving = place + ".saving";
  CopyOptions options = internal::logged_copy(fmt::format("fetching '{}/{}'", url, name));
  options.durable = true;
  copy_parallel(url + "/" + name, saving, options);
  fs::rename(saving, place);
  sync_directory(directory);
}

// A local path that may be written as a URL.
std::optional<std::string> as_local(const std::string& url) {
  if (is_remote(url)) return std::nullopt;
  return local_path(url);
}

std::string without_slashes(std::string url) {
  while (url.ends_with('/')) url.pop_back();
  return url;
}

}  // namespace

std::string places_directory(const std::string& configured) {
  if (!configured.empty()) return configured;
  const auto variable = [](const char* name) {
    return std::string(std::getenv(name) ? std::getenv(name) : "");
  };
  if (const std::string cache = variable("XDG_CACHE_HOME"); !cache.empty()) return cache + "/moxing";
  if (const std::string home = variable("HOME"); !home.empty()) return home + "/.cache/moxing";
  return fs::temp_directory_path() / fmt::format("moxing-{}", ::getuid());
}

std::string local_data(const std::string& url, const std::string& places) {
  if (auto local = as_local(url)) return *local;
  const std::string place = internal::place_of("data", url, places);
  const PlaceLock lock(place);
  const Source source = look_at(url);
  if (!is_there(place, source)) fill(url, place, source);
  return source.is_directory ? place : place + "/" + last_name(url);
}

std::string local_checkpoint(const std::string& given, const std::string& places) {
  if (auto local = as_local(given)) return *local;
  const std::string url = without_slashes(given);
  if (!is_directory(url)) return local_data(url, places);
  if (exists(fmt::format("{}/{}", url, kManifest))) return local_data(url, places);
  const std::vector<int64_t> steps = internal::complete_steps(url);
  if (steps.empty())
    throw NotFound(fmt::format("no checkpoint '{}': no checkpoint-STEP/{} lies in it", given, kManifest));
  return local_data(fmt::format("{}/checkpoint-{}", url, steps.back()), places);
}

std::string place_of_run(const std::string& url, const std::string& places) {
  if (auto local = as_local(url)) return *local;
  return internal::place_of("runs", without_slashes(url), places);
}

std::string local_run(const std::string& given, const std::string& places) {
  if (auto local = as_local(given)) return *local;
  const std::string url = without_slashes(given), place = place_of_run(url, places);
  const PlaceLock lock(place);
  make_directories(place);
  const std::vector<int64_t> there = internal::complete_steps(url), here = internal::complete_steps(place);
  const bool is_ahead = !here.empty() && (there.empty() || here.back() > there.back());
  if (is_ahead)
    log_warning(
        fmt::format("'{}' has checkpoint-{}, and the store's newest is {}: the run goes on from the former",
                    place, here.back(), there.empty() ? "none" : fmt::format("checkpoint-{}", there.back())));
  for (const int64_t step : there) fetch_checkpoint(url, place, step);
  if (is_ahead || !exists(url)) return place;
  std::vector<std::string> files;
  for (const DirectoryEntry& entry : scan_dir(url, {.recursive = true, .skip_dir = true}))
    if (!internal::step_of(entry.name.substr(0, entry.name.find('/')))) files.push_back(entry.name);
  // Without names `copy_parallel` would take all there is.
  if (!files.empty()) copy_parallel(url, place, {.file_list = files});
  return place;
}

}  // namespace mox::file
