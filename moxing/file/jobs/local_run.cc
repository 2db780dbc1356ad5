#include <fmt/format.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "moxing/file/jobs/internal/fetch_files.h"
#include "moxing/file/jobs/internal/known_manifests.h"
#include "moxing/file/jobs/internal/own_directory.h"
#include "moxing/file/jobs/internal/place.h"
#include "moxing/file/jobs/internal/run_names.h"
#include "moxing/file/jobs/local_places.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/log.h"
#include "runtime/base/opened_file.h"

namespace mox::file {
namespace {

using internal::as_local;
using internal::kManifest;
using internal::last_name;
using internal::PlaceLock;
using internal::without_slashes;
namespace fs = std::filesystem;

// The digest of a manifest, by the name of the checkpoint: "checkpoint-9", "best/checkpoint-5".
using Manifests = std::map<std::string, std::string>;

// A run as the store has it.
struct StoredRun {
  Manifests checkpoints;              // that are complete
  std::map<std::string, Stat> files;  // of none of them, nor of one that is on its way
};

// Nothing if it is not the manifest of a checkpoint. `place` may be a URL.
std::optional<std::string> digest_in(const std::string& place, const std::string& checkpoint) {
  try {
    const std::string content = read(fmt::format("{}/{}/{}", place, checkpoint, kManifest));
    if (internal::begins_as_manifest(content)) return internal::digest_of_manifest(content);
  } catch (const NotFound&) {            // a run that is going on elsewhere has deleted it meanwhile
  } catch (const FailedPrecondition&) {  // a directory is called so
  }
  return std::nullopt;
}

// Names are the store's: below a directory of this machine some would lie elsewhere.
void require_below(const std::string& url, const std::string& name) {
  for (const fs::path& part : fs::path(name))
    if (part == "." || part == "..")
      throw DataError(
          fmt::format("the store has an object '{}/{}', which would lie outside of the run on this "
                      "machine: delete it there, or give it another name",
                      url, name));
}

StoredRun look_at_run(const std::string& url) {
  StoredRun run;
  if (!exists(url)) {
    internal::require_bucket(url);
    return run;
  }
  const std::vector<DirectoryEntry> entries = scan_dir(url, {.recursive = true, .skip_dir = true});
  for (const DirectoryEntry& entry : entries) require_below(url, entry.name);
  std::set<std::string> on_their_way;
  for (const DirectoryEntry& entry : entries) {
    const size_t slash = entry.name.rfind('/');
    if (slash == std::string::npos) continue;
    const std::string directory = entry.name.substr(0, slash), name = entry.name.substr(slash + 1);
    if (!internal::has_checkpoint_name(directory)) continue;
    if (auto digest = name == kManifest ? digest_in(url, directory) : std::nullopt)
      run.checkpoints[directory] = *std::move(digest);
    // Another program may have a state.json, too.
    const bool is_of_checkpoint = name != kManifest && internal::is_of_every_checkpoint(name);
    if (is_of_checkpoint || internal::is_where_runs_look(directory)) on_their_way.insert(directory);
  }
  const auto is_wanted = [&](const std::string& name) {
    const size_t last = name.rfind('/');
    for (size_t slash = name.find('/'); slash != std::string::npos; slash = name.find('/', slash + 1)) {
      const std::string directory = name.substr(0, slash);
      if (internal::is_of_machine(last_name(directory), true)) return false;
      if (run.checkpoints.contains(directory))  // and what somebody keeps there
        return slash != last || !internal::is_of_every_checkpoint(name.substr(slash + 1));
      if (on_their_way.contains(directory)) return false;
    }
    return !internal::is_of_machine(last_name(name), false);
  };
  for (const DirectoryEntry& entry : entries)
    if (is_wanted(entry.name)) run.files[entry.name] = entry.stat;
  return run;
}

// The checkpoints of this machine that a run may go on from.
Manifests look_at_place(const std::string& place) {
  Manifests checkpoints;
  for (const DirectoryEntry& entry : scan_dir(place, {.skip_file = true}))
    if (internal::step_of(entry.name))
      if (auto digest = digest_in(place, entry.name)) checkpoints[entry.name] = *std::move(digest);
  return checkpoints;
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
int64_t newest_step(const Manifests& checkpoints) {
  int64_t newest = -1;
  for (const auto& [name, digest] : checkpoints)
    newest = std::max(newest, internal::step_of(name).value_or(-1));
  return newest;
}

// Whether a run is going on in the place: it knows best what is there.
bool is_in_use(const std::string& place) {
  try {
    const FileDescriptor lock = open_regular_file(place + "/.lock");
    return ::flock(lock.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  } catch (const Error&) {
    return false;  // of no run; what else has this name, the run that begins here refuses by name
  }
}

// Two trainings of one run: another machine has written to the store, and what is here is not of that
// training.
// "" if it is not so, else in which checkpoint it shows.
std::string other_training(const Manifests& there, const std::string& place, const Manifests& here) {
  const auto known = internal::read_known_manifests(place);
  const auto is_known = [&](const std::string& name) { return known && known->contains(name); };
  std::string of_others, of_here;
  for (const auto& [name, stored] : there) {
    if (!internal::step_of(name)) continue;
    const auto found = here.find(name);
    if (found == here.end()) {
      if (known && !is_known(name)) of_others = name;
      continue;
    }
    // Else it is this machine's own, of which the store has an earlier one.
    if (stored != found->second && !(is_known(name) && known->at(name) == stored)) return name;
  }
  for (const auto& [name, digest] : here)
    if (!there.contains(name) && !is_known(name)) of_here = name;
  return of_here.empty() ? "" : of_others;
}

// The store counts. What is here is lost to nobody.
void set_aside(const std::string& url, const std::string& place, const std::string& checkpoint,
               int64_t newest_there) {
  const std::string aside = internal::aside_of(place);
  fs::rename(place, aside);
  internal::make_own_directory(place);
  log_warning(fmt::format(
      "'{}' has another {} than this machine's training of the run: another machine has trained it. It goes "
      "on from the store's checkpoint-{}, and what was here is in '{}'",
      url, checkpoint, newest_there, aside));
}

}  // namespace

std::string place_of_run(const std::string& url, const std::string& places) {
  if (auto local = as_local(url)) return *local;
  return internal::place_of("runs", without_slashes(url), places);
}

std::string local_run(const std::string& given, const std::string& places) {
  if (auto local = as_local(given)) return *local;
  const std::string url = without_slashes(given);
  std::string place = place_of_run(url, places);
  const PlaceLock lock(place, places);
  if (is_in_use(place)) return place;
  const StoredRun there = look_at_run(url);
  Manifests here = look_at_place(place);
  const int64_t newest_there = newest_step(there.checkpoints);
  if (const std::string other = other_training(there.checkpoints, place, here); !other.empty()) {
    set_aside(url, place, other, newest_there);
    here = {};
  }
  const int64_t newest_here = newest_step(here);
  const bool is_ahead = newest_here > newest_there;
  if (is_ahead)
    log_warning(fmt::format(
        "'{}' has checkpoint-{}, and the store's newest is {}: the run goes on from the former", place,
        newest_here, newest_there < 0 ? "none" : fmt::format("checkpoint-{}", newest_there)));
  for (const auto& [name, digest] : there.checkpoints)
    if (!is_ahead || internal::step_of(name)) fetch_checkpoint(url, place, name);
  if (!is_ahead) internal::fetch_files(url, place, there.files);
  auto known = internal::read_known_manifests(place).value_or(internal::KnownManifests{});
  for (const auto& [name, digest] : there.checkpoints) {
    if (!internal::step_of(name) || !mox::is_there(place + "/" + name)) continue;
    // One that was here and is not known is the same as the store's: else all would have been set aside.
    if (here.contains(name) && known.contains(name)) continue;
    if (auto digest_here = digest_in(place, name)) known[name] = *std::move(digest_here);
  }
  internal::write_known_manifests(place, known);
  return place;
}

}  // namespace mox::file
