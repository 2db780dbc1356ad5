#include "moxing/file/jobs/internal/place.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <memory>
#include <thread>

#include "moxing/file/jobs/internal/own_directory.h"
#include "moxing/file/jobs/lock_owner.h"
#include "moxing/file/store_client.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/log.h"

namespace mox::file::internal {

namespace fs = std::filesystem;

std::string place_of(std::string_view kind, const std::string& url, const std::string& places) {
  std::string name = without_slashes(url);
  Sha256 digest;
  digest.update(fmt::format("{} {}", store_client()->options().endpoint, name));
  name = name.substr(name.rfind('/') + 1);
  for (char& c : name)
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_'))
      c = '_';
  return fmt::format("{}/{}/{}-{}", places, kind, name.substr(0, 60), digest.hex().substr(0, 16));
}

std::optional<std::string> as_local(const std::string& url) {
  if (is_remote(url)) return std::nullopt;
  return local_path(url);
}

std::string without_slashes(std::string url) {
  while (url.ends_with('/')) url.pop_back();
  return url;
}

std::string last_name(const std::string& url) {
  const std::string name = without_slashes(url);
  return name.substr(name.rfind('/') + 1);
}

void require_bucket(const std::string& url) {
  const std::string bucket = url.substr(0, url.find('/', url.find("://") + 3));
  try {
    if (exists(bucket)) return;
  } catch (const IoError&) {
    return;  // who may not look at the whole bucket may write there all the same
  }
  throw NotFound(fmt::format(
      "nothing can be written to '{}': there is no bucket '{}'. Name one that is there, or have it "
      "made first",
      url, last_name(bucket)));
}

namespace {

constexpr std::chrono::seconds kBetweenWords{60};

// Whoever may open a file for reading may hold its lock.
FileDescriptor open_owners_lock(const std::string& path) {
  constexpr mode_t kOwnersAlone = 0600;
  FileDescriptor file = open_kept_file(path, kOwnersAlone);
  [[maybe_unused]] const int changed = ::fchmod(file.get(), kOwnersAlone);  // one of an earlier version
  return file;
}

void make_directories_of(const fs::path& directory, const fs::path& places) {
  if (directory.lexically_normal() == places.lexically_normal() || directory == directory.parent_path())
    return make_safe_directory(places);
  make_directories_of(directory.parent_path(), places);
  make_own_directory(directory);
}

}  // namespace

PlaceLock::PlaceLock(const std::string& place, const std::string& places) {
  make_directories_of(fs::path(place).parent_path(), fs::path(places + "/").parent_path());
  const std::string path = place + ".lock";
  file_ = open_owners_lock(path);
  // After a moment, since the holder writes who it is when it has the lock.
  using Clock = std::chrono::steady_clock;
  auto words = Clock::now() + std::chrono::seconds(1);
  while (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR)
      throw IoError(fmt::format("cannot lock '{}': {}", path, std::strerror(errno)));
    if (Clock::now() > words) {
      log_info(
          fmt::format("waiting for {}, which fills '{}'", mox::internal::lock_owner(file_.get()), place));
      words = Clock::now() + kBetweenWords;
    }
    std::this_thread::sleep_for(mox::internal::kBetweenLockAttempts);
  }
  mox::internal::write_lock_owner(file_.get());
  make_own_directory(place);
}

void write_into_place(const std::string& place, std::string_view name, const std::string& content) {
  const HeldDirectory held(place);
  try {
    write_file_atomically(held.file(name), content);
  } catch (const IoError& error) {
    held.throw_named(error);
  }
}

namespace {

constexpr std::string_view kInUse = ".in-use";

}  // namespace

PlaceUse::PlaceUse(const std::string& place)
    : path_(place + std::string(kInUse)), file_(open_owners_lock(path_)) {
  make_own_directory(place);
}

bool PlaceUse::try_alone() { return lock(LOCK_EX); }

void PlaceUse::share() {
  if (!lock(LOCK_SH)) throw IoError(fmt::format("'{}' is locked by a process that fills no place", path_));
}

bool PlaceUse::lock(int kind) {
  while (::flock(file_.get(), kind | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return false;
    if (errno != EINTR) throw IoError(fmt::format("cannot lock '{}': {}", path_, std::strerror(errno)));
  }
  return true;
}

void remove_place(const std::string& place) {
  std::error_code stays;  // the next one tries again
  fs::remove(place + ".complete", stays);
  fs::remove_all(place, stays);
  if (!stays) fs::remove(place + std::string(kInUse), stays);
}

bool leads_out_of(const std::string& directory, const std::string& path) {
  std::error_code gone;
  if (!fs::is_symlink(path, gone)) return false;
  const fs::path target = fs::canonical(path, gone);
  if (gone) return false;  // it leads to nothing
  const fs::path own = fs::canonical(directory, gone);
  return std::mismatch(own.begin(), own.end(), target.begin(), target.end()).first != own.end();
}

std::string aside_of(const std::string& place) {
  return fmt::format("{}.aside-{}", place, std::chrono::system_clock::now().time_since_epoch().count());
}

std::string some_of(const std::vector<std::string>& names) {
  constexpr size_t kMostNamed = 10;
  const size_t named = std::min(names.size(), kMostNamed);
  std::string text = fmt::format("{}", fmt::join(names.begin(), names.begin() + named, ", "));
  if (names.size() > named) text += fmt::format(" and {} more", names.size() - named);
  return text;
}

std::optional<int64_t> step_of(std::string_view name) {
  constexpr std::string_view kPrefix = "checkpoint-";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  int64_t step = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), step);
  if (error != std::errc() || end != name.data() + name.size() || step < 0) return std::nullopt;
  return step;
}

std::vector<int64_t> complete_steps(const std::string& log_dir) {
  std::vector<int64_t> steps;
  if (!exists(log_dir)) return steps;
  for (const DirectoryEntry& entry : scan_dir(log_dir, {.recursive = true, .skip_dir = true})) {
    const size_t slash = entry.name.find('/');
    if (slash == std::string::npos || entry.name.substr(slash + 1) != kManifest) continue;
    if (const auto step = step_of(std::string_view(entry.name).substr(0, slash))) steps.push_back(*step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

CopyOptions logged_copy(const std::string& what) {
  using Clock = std::chrono::steady_clock;
  const auto last = std::make_shared<Clock::time_point>(Clock::now());
  return {.on_progress = [what, last](const CopyProgress& now) {
    if (Clock::now() - *last < std::chrono::seconds(10)) return;
    *last = Clock::now();
    log_info(fmt::format("{}: {} of {} files, {} of {} MB", what, now.files, now.files_total,
                         now.bytes / 1'000'000, now.bytes_total / 1'000'000));
  }};
}

}  // namespace mox::file::internal
