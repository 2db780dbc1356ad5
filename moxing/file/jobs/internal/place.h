// One place on this machine: a directory with a lock beside it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "moxing/file/copy.h"
#include "moxing/file/file.h"
#include "runtime/base/opened_file.h"

namespace mox::file::internal {

// `<places>/<kind>/<last name>-<digest of endpoint and URL>`.
std::string place_of(std::string_view kind, const std::string& url, const std::string& places);

// A local path that may be written as a URL; nothing for the name of an object in a store.
std::optional<std::string> as_local(const std::string& url);

std::string without_slashes(std::string url);  // at its end
std::string last_name(const std::string& url);

// Throws NotFound where the bucket that something is to be written to is not there: it would find no place
// after all the work.
void require_bucket(const std::string& url);

// Waits for its turn among the processes of this machine, and says so, and for whom, again and again. Held
// while it lives.
class PlaceLock {
 public:
  // Makes the place, somewhere below the directory `places`, and the directories on its way, all of them this
  // user's alone to write to. Throws UnusablePlace where that cannot be.
  PlaceLock(const std::string& place, const std::string& places);

 private:
  FileDescriptor file_;
};

// A file of the place, whole: not through a link that has come in the place's stead. Throws IoError.
void write_into_place(const std::string& place, std::string_view name, const std::string& content);

// Who uses a place, which lasts as long as the object or the process. Only for the holder of the lock that
// tells who may change the place.
class PlaceUse {
 public:
  explicit PlaceUse(const std::string& place);  // makes it, and throws, as the lock does
  // False if others use it. Else they cannot begin to until share().
  bool try_alone();
  void share();

 private:
  bool lock(int kind);
  std::string path_;
  FileDescriptor file_;
};

// Removes a place and what lies beside it.
void remove_place(const std::string& place);

// Whether `path` is a link to something that does not lie below `directory`.
bool leads_out_of(const std::string& directory, const std::string& path);

// A name beside a place, for what was there and is not to be lost: "<place>.aside-NUMBER".
std::string aside_of(const std::string& place);
// The first of names, for a message.
std::string some_of(const std::vector<std::string>& names);

// The step of "checkpoint-<step>"; nothing for any other name.
std::optional<int64_t> step_of(std::string_view name);

// The steps of the complete checkpoints of a log_dir, ascending: those that have their manifest.
std::vector<int64_t> complete_steps(const std::string& log_dir);

// The manifest of a checkpoint: it is written last.
inline constexpr std::string_view kManifest = "state.json";

// Options of a copy that logs how far it is every ten seconds.
CopyOptions logged_copy(const std::string& what);

}  // namespace mox::file::internal
