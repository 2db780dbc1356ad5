#include "moxing/file/jobs/local_places.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <vector>

#include "moxing/file/jobs/internal/place.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/log.h"

namespace mox::file {
namespace {

using internal::as_local;
using internal::kManifest;
using internal::last_name;
using internal::PlaceLock;
using internal::without_slashes;
namespace fs = std::filesystem;

// In a log_dir: the directory of the best state, and the list of the classes.
constexpr const char* kBest = "best";
constexpr const char* kClasses = "labels.txt";

// What of the store is wanted.
struct Source {
  enum class Kind { kFile, kDirectory, kFilesOfDirectory };
  Kind kind = Kind::kDirectory;
  std::map<std::string, Stat> files;

  // In one line: another line is other content.
  std::string identity() const {
    Sha256 digest;
    for (const auto& [name, stat] : files)
      digest.update(fmt::format("{}\n{} {} {}\n", name, stat.length, stat.etag,
                                stat.etag.empty() ? std::chrono::system_clock::to_time_t(stat.mtime) : 0));
    return digest.hex();
  }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& [name, stat] : files) names.push_back(name);
    return names;
  }
};

Source look_at(const std::string& url) {
  Source source;
  const Stat stat = file::stat(url);
  if (is_directory(url)) {  // even if there is a file of this name, too
    for (DirectoryEntry& entry : scan_dir(url, {.recursive = true, .skip_dir = true}))
      source.files[entry.name] = std::move(entry.stat);
  } else {
    source.kind = Source::Kind::kFile;
    source.files[last_name(url)] = stat;
  }
  return source;
}

// What readers of records keep beside them is no file of a data set.
bool is_index(const std::string& name) {
  return name.ends_with(".mox-index") || name.find(".mox-index.tmp.") != std::string::npos;
}

bool is_there(const std::string& place, const Source& source) {
  try {
    if (read_file(place + ".complete") != source.identity()) return false;
    int64_t as_wanted = 0, others = 0;
    for (const DirectoryEntry& entry : scan_dir(place, {.recursive = true, .skip_dir = true})) {
      const auto wanted = source.files.find(entry.name);
      as_wanted += wanted != source.files.end() && wanted->second.length == entry.stat.length;
      others += wanted == source.files.end() && !is_index(entry.name);
    }
    // Beside a checkpoint its users keep what they have found.
    const bool may_have_others = source.kind == Source::Kind::kFilesOfDirectory;
    return as_wanted == std::ssize(source.files) && (may_have_others || others == 0);
  } catch (const NotFound&) {
    return false;
  }
}

using Look = std::function<Source()>;

void fill(const std::string& url, const std::string& place, const Source& source, const Look& look) {
  std::error_code error;
  if (fs::remove(place + ".complete", error); error)
    throw IoError(fmt::format("'{}.complete' cannot be removed: {}", place, error.message()));
  const std::string what = fmt::format("'{}' to '{}'", url, place);
  log_info("copying " + what);
  CopyOptions options = internal::logged_copy("copying " + what);
  options.durable = true;
  int64_t unchecked = 0;
  switch (source.kind) {
    case Source::Kind::kFile:
      unchecked = copy(url, place + "/" + last_name(url), options).unchecked;
      break;
    case Source::Kind::kDirectory:
      unchecked = sync(url, place, true, options).copied.unchecked;
      break;
    case Source::Kind::kFilesOfDirectory:
      options.file_list = source.names();
      unchecked = copy_parallel(url, place, options).unchecked;
      break;
  }
  if (unchecked)
    log_warning(
        fmt::format("{} files of '{}' were checked by their sizes alone: the store gives no checksum of them",
                    unchecked, url));
  if (look().identity() != source.identity())
    throw IoError(fmt::format("'{}' has changed while it was copied to '{}'; start again when it is complete",
                              url, place));
  write_file_atomically(place + ".complete", source.identity());
}

// The places of a data set: `first`, and those that were made while others were in use, "<first>-2".
std::vector<std::string> places_beside(const std::string& first) {
  std::vector<std::string> places{first};
  const fs::path path(first);
  const std::string begin = path.filename().string() + "-";
  for (const DirectoryEntry& entry : scan_dir(path.parent_path(), {.skip_file = true}))
    if (entry.name.starts_with(begin) &&
        entry.name.find_first_not_of("0123456789", begin.size()) == std::string::npos)
      places.push_back(path.parent_path() / entry.name);
  return places;
}

// The one that has the content; "" if none has.
std::string place_with(const std::string& first, const Source& source,
                       std::unique_ptr<internal::PlaceUse>& use) {
  for (const std::string& place : places_beside(first))
    if (is_there(place, source)) {
      use = std::make_unique<internal::PlaceUse>(place);
      return place;
    }
  return "";
}

// One that nobody uses, locked so that nobody else takes it.
std::string free_place(const std::string& first, std::unique_ptr<internal::PlaceUse>& use) {
  const std::vector<std::string> places = places_beside(first);
  for (const std::string& place : places) {
    use = std::make_unique<internal::PlaceUse>(place);
    if (use->try_alone()) return place;
  }
  std::string place;
  for (int number = 2; place.empty() || std::ranges::find(places, place) != places.end(); ++number)
    place = fmt::format("{}-{}", first, number);
  log_info(fmt::format("'{}' is in use, with other content than the store has now: that goes to '{}'", first,
                       place));
  use = std::make_unique<internal::PlaceUse>(place);
  if (!use->try_alone()) throw IoError(fmt::format("'{}' is not there, and yet in use", place));
  return place;
}

void remove_unused(const std::string& first, const std::string& used) {
  for (const std::string& place : places_beside(first))
    if (place != first && place != used && internal::PlaceUse(place).try_alone())
      internal::remove_place(place);
}

// A checkpoint of a store, or a log_dir whose newest is meant, with the files that are looked for around it.
struct StoredCheckpoint {
  std::string run;         // the log_dir that it lies in
  std::string checkpoint;  // there: "checkpoint-9", "best/checkpoint-5"; "": the newest, and the best state
};

StoredCheckpoint stored_checkpoint(const std::string& url) {
  if (!exists(fmt::format("{}/{}", url, kManifest))) return {url, ""};
  const auto above = [](const std::string& place) { return place.substr(0, place.rfind('/')); };
  const std::string run = above(url), name = last_name(url);
  if (last_name(run) == kBest && is_remote(above(run)))
    return {above(run), fmt::format("{}/{}", kBest, name)};
  return {run, name};
}

Source look_at(const StoredCheckpoint& wanted, const std::string& given) {
  Source source{.kind = Source::Kind::kFilesOfDirectory, .files = {}};
  const auto add = [&](const std::string& directory) {
    for (DirectoryEntry& entry :
         scan_dir(wanted.run + "/" + directory, {.recursive = true, .skip_dir = true}))
      source.files[directory + "/" + entry.name] = std::move(entry.stat);
  };
  if (!wanted.checkpoint.empty()) {
    add(wanted.checkpoint);
  } else {
    const std::vector<int64_t> steps = internal::complete_steps(wanted.run);
    if (!steps.empty()) add(fmt::format("checkpoint-{}", steps.back()));
    for (const int64_t step : internal::complete_steps(fmt::format("{}/{}", wanted.run, kBest)))
      add(fmt::format("{}/checkpoint-{}", kBest, step));
    if (source.files.empty())
      throw NotFound(fmt::format("no checkpoint '{}': no checkpoint-STEP/{} lies in it", given, kManifest));
  }
  if (const std::string classes = wanted.run + "/" + kClasses; exists(classes))
    source.files[kClasses] = file::stat(classes);
  return source;
}

// Of a directory that everybody may write to: somebody else may have made it before us.
std::string own_directory(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    throw IoError(fmt::format("cannot make '{}': {}", path, std::strerror(errno)));
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0)
    throw IoError(fmt::format("cannot look at '{}': {}", path, std::strerror(errno)));
  if (!S_ISDIR(status.st_mode) || status.st_uid != ::geteuid() || (status.st_mode & 022) != 0)
    throw FailedPrecondition(
        fmt::format("copies of what lies in a store would be kept in '{}', but that is no directory of this "
                    "user's alone. Set HOME, XDG_CACHE_HOME or file.local_directory to a place of your own, "
                    "or remove it",
                    path));
  return path;
}

}  // namespace

std::string places_directory(const std::string& configured) {
  if (!configured.empty()) return configured;
  const auto variable = [](const char* name) {
    return std::string(std::getenv(name) ? std::getenv(name) : "");
  };
  if (const std::string cache = variable("XDG_CACHE_HOME"); !cache.empty()) return cache + "/moxing";
  if (const std::string home = variable("HOME"); !home.empty()) return home + "/.cache/moxing";
  return own_directory(fs::temp_directory_path() / fmt::format("moxing-{}", ::getuid()));
}

std::string local_data(const std::string& url, const std::string& places) {
  return DataInUse(url, places).path();
}

DataInUse::DataInUse(const std::string& url, const std::string& places) {
  if (auto local = as_local(url)) {
    path_ = *std::move(local);
    return;
  }
  const std::string first = internal::place_of("data", url, places);
  const PlaceLock lock(first, places);
  const Source source = look_at(url);
  std::string place = place_with(first, source, use_);
  if (place.empty()) {
    place = free_place(first, use_);
    fill(url, place, source, [&] { return look_at(url); });
  }
  use_->share();
  remove_unused(first, place);
  content_ = source.identity();
  path_ = source.kind == Source::Kind::kFile ? place + "/" + last_name(url) : place;
}

DataInUse::~DataInUse() = default;
DataInUse::DataInUse(DataInUse&&) noexcept = default;
DataInUse& DataInUse::operator=(DataInUse&&) noexcept = default;

std::string local_checkpoint(const std::string& given, const std::string& places) {
  if (auto local = as_local(given)) return *local;
  const std::string url = without_slashes(given);
  if (!is_directory(url)) return local_data(url, places);
  const StoredCheckpoint wanted = stored_checkpoint(url);
  const Look look = [&] { return look_at(wanted, given); };
  // A run that is going on deletes what it has newer ones of.
  constexpr int kAttempts = 3;
  for (int attempt = 1;; ++attempt) {
    const Source source = look();
    // Other content has a place of its own: what is there may be in use.
    const std::string place =
        fmt::format("{}/{}", internal::place_of("checkpoints", url, places), source.identity().substr(0, 16));
    try {
      const PlaceLock lock(place, places);
      if (!is_there(place, source)) fill(wanted.run, place, source, look);
      return wanted.checkpoint.empty() ? place : place + "/" + wanted.checkpoint;
    } catch (const Error&) {
      if (attempt == kAttempts || look().identity() == source.identity()) throw;
    }
  }
}

}  // namespace mox::file
