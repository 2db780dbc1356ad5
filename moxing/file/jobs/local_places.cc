#include "moxing/file/jobs/local_places.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "moxing/file/jobs/internal/known_manifests.h"
#include "moxing/file/jobs/internal/place.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/log.h"

namespace mox::file {
namespace {

using internal::kManifest;
using internal::PlaceLock;
namespace fs = std::filesystem;

// In a log_dir: the directory of the best state, and the list of the classes.
constexpr const char* kBest = "best";
constexpr const char* kClasses = "labels.txt";

std::string last_name(std::string url) {
  while (url.ends_with('/')) url.pop_back();
  return url.substr(url.rfind('/') + 1);
}

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
  if (stat.is_directory) {
    for (DirectoryEntry& entry : scan_dir(url, {.recursive = true, .skip_dir = true}))
      source.files[entry.name] = std::move(entry.stat);
  } else {
    source.kind = Source::Kind::kFile;
    source.files[last_name(url)] = stat;
  }
  return source;
}

bool is_there(const std::string& place, const Source& source) {
  try {
    if (read_file(place + ".complete") != source.identity()) return false;
    const auto found = scan_dir(place, {.recursive = true, .skip_dir = true});
    const auto as_wanted = std::ranges::count_if(found, [&](const DirectoryEntry& entry) {
      const auto wanted = source.files.find(entry.name);
      return wanted != source.files.end() && wanted->second.length == entry.stat.length;
    });
    // Beside a checkpoint its users keep what they have found.
    const bool may_have_others = source.kind == Source::Kind::kFilesOfDirectory;
    return as_wanted == std::ssize(source.files) && (may_have_others || found.size() == source.files.size());
  } catch (const NotFound&) {
    return false;
  }
}

using Look = std::function<Source()>;

void fill(const std::string& url, const std::string& place, const Source& source, const Look& look) {
  fs::remove(place + ".complete");
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

// A run as the store has it.
struct StoredRun {
  std::set<std::string> checkpoints;  // that are complete: "checkpoint-9", "best/checkpoint-5"
  std::vector<std::string> files;     // of none of them, nor of one that is on its way
};

StoredRun look_at_run(const std::string& url) {
  StoredRun run;
  if (!exists(url)) return run;
  const std::vector<DirectoryEntry> entries = scan_dir(url, {.recursive = true, .skip_dir = true});
  for (const DirectoryEntry& entry : entries)
    if (const size_t slash = entry.name.rfind('/');
        slash != std::string::npos && entry.name.substr(slash + 1) == kManifest)
      run.checkpoints.insert(entry.name.substr(0, slash));
  const auto is_of_checkpoint = [&](const std::string& name) {
    for (size_t slash = name.find('/'); slash != std::string::npos; slash = name.find('/', slash + 1)) {
      const std::string directory = name.substr(0, slash);
      if (run.checkpoints.contains(directory) || internal::step_of(last_name(directory))) return true;
    }
    return false;
  };
  for (const DirectoryEntry& entry : entries)
    if (!is_of_checkpoint(entry.name)) run.files.push_back(entry.name);
  return run;
}

void fetch_checkpoint(const std::string& url, const std::string& directory, const std::string& name) {
  const std::string place = directory + "/" + name;
  if (mox::is_there(place)) return;
  const std::string saving = place + ".saving";
  CopyOptions options = internal::logged_copy(fmt::format("fetching '{}/{}'", url, name));
  options.durable = true;
  try {
    copy_parallel(url + "/" + name, saving, options);
  } catch (const Error&) {
    if (exists(fmt::format("{}/{}/{}", url, name, kManifest))) throw;
  }
  if (!exists(fmt::format("{}/{}", saving, kManifest))) {
    fs::remove_all(saving);  // a run that is going on elsewhere has deleted it meanwhile
    return;
  }
  fs::rename(saving, place);
  sync_directory(fs::path(place).parent_path());
}

// The newest of the names "checkpoint-<step>"; -1 if there is none.
int64_t newest_step(const std::set<std::string>& checkpoints) {
  int64_t newest = -1;
  for (const std::string& name : checkpoints) newest = std::max(newest, internal::step_of(name).value_or(-1));
  return newest;
}

// Whether a run is going on in the place: it knows best what is there.
bool is_in_use(const std::string& place) {
  const int lock = ::open((place + "/.lock").c_str(), O_RDONLY | O_CLOEXEC);
  if (lock < 0) return false;
  const bool is_held = ::flock(lock, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(lock);
  return is_held;
}

// The digest of the manifest; `place` may be a URL.
std::string digest_in(const std::string& place, const std::string& checkpoint) {
  return internal::digest_of_manifest(read(fmt::format("{}/{}/{}", place, checkpoint, kManifest)));
}

// Two trainings of one run: another machine has written to the store, and what is here is not of that
// training.
// "" if it is not so, else in which checkpoint it shows.
std::string other_training(const std::string& url, const StoredRun& there, const std::string& place,
                           const StoredRun& here) {
  const auto known = internal::read_known_manifests(place);
  const auto is_known = [&](const std::string& name) { return known && known->contains(name); };
  std::string of_others, of_here;
  for (const std::string& name : there.checkpoints) {
    if (!internal::step_of(name)) continue;
    if (!here.checkpoints.contains(name)) {
      if (known && !is_known(name)) of_others = name;
      continue;
    }
    const std::string stored = digest_in(url, name);
    // Else it is this machine's own, of which the store has an earlier one.
    if (stored != digest_in(place, name) && !(is_known(name) && known->at(name) == stored)) return name;
  }
  for (const std::string& name : here.checkpoints)
    if (internal::step_of(name) && !there.checkpoints.contains(name) && !is_known(name)) of_here = name;
  return of_here.empty() ? "" : of_others;
}

// The store counts. What is here is lost to nobody.
void set_aside(const std::string& url, const std::string& place, const std::string& checkpoint,
               int64_t newest_there) {
  const std::string aside =
      fmt::format("{}.aside-{}", place, std::chrono::system_clock::now().time_since_epoch().count());
  fs::rename(place, aside);
  make_directories(place);
  log_warning(fmt::format(
      "'{}' has another {} than this machine's training of the run: another machine has trained it. It goes "
      "on from the store's checkpoint-{}, and what was here is in '{}'",
      url, checkpoint, newest_there, aside));
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
  if (!is_there(place, source)) fill(url, place, source, [&] { return look_at(url); });
  return source.kind == Source::Kind::kFile ? place + "/" + last_name(url) : place;
}

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
      const PlaceLock lock(place);
      if (!is_there(place, source)) fill(wanted.run, place, source, look);
      return wanted.checkpoint.empty() ? place : place + "/" + wanted.checkpoint;
    } catch (const Error&) {
      if (attempt == kAttempts || look().identity() == source.identity()) throw;
    }
  }
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
  if (is_in_use(place)) return place;
  const StoredRun there = look_at_run(url);
  StoredRun here = look_at_run(place);
  const int64_t newest_there = newest_step(there.checkpoints);
  if (const std::string other = other_training(url, there, place, here); !other.empty()) {
    set_aside(url, place, other, newest_there);
    here = {};
  }
  const int64_t newest_here = newest_step(here.checkpoints);
  const bool is_ahead = newest_here > newest_there;
  if (is_ahead)
    log_warning(fmt::format(
        "'{}' has checkpoint-{}, and the store's newest is {}: the run goes on from the former", place,
        newest_here, newest_there < 0 ? "none" : fmt::format("checkpoint-{}", newest_there)));
  for (const std::string& name : there.checkpoints)
    if (!is_ahead || internal::step_of(name)) fetch_checkpoint(url, place, name);
  // Without names `copy_parallel` would take all there is.
  if (!is_ahead && !there.files.empty()) copy_parallel(url, place, {.file_list = there.files});
  auto known = internal::read_known_manifests(place).value_or(internal::KnownManifests{});
  for (const std::string& name : there.checkpoints) {
    if (!internal::step_of(name) || !mox::is_there(place + "/" + name)) continue;
    // One that was here and is not known is the same as the store's: else all would have been set aside.
    if (!here.checkpoints.contains(name) || !known.contains(name)) known[name] = digest_in(place, name);
  }
  internal::write_known_manifests(place, known);
  return place;
}

}  // namespace mox::file
