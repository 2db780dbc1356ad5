#include "moxing/checkpoint/internal/checkpoint_directory.h"

#include <fmt/format.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/log.h"

namespace mox::internal {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "checkpoint-";
constexpr std::string_view kSaving = ".saving";
constexpr std::string_view kPrevious = ".previous";
constexpr std::string_view kDeleting = ".deleting";
constexpr std::chrono::seconds kLockPatience{60};

std::string in(const std::string& log_dir, int64_t step, std::string_view suffix) {
  return fmt::format("{}/{}{}", log_dir, checkpoint_name(step), suffix);
}

void rename_or_throw(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0)
    throw IoError(fmt::format("cannot rename '{}' to '{}': {}", from, to, std::strerror(errno)));
}

void remove_or_throw(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) throw IoError(fmt::format("cannot remove '{}': {}", path, error.message()));
}

// The new checkpoint is in its place, so a former one that cannot be removed is no failure: its name marks it
// as a leftover, and the next save, which removes leftovers, reports it.
void remove_former(const std::string& path) {
  std::error_code ignored;
  fs::remove_all(path, ignored);
}

}  // namespace

std::string checkpoint_name(int64_t step) { return fmt::format("{}{}", kPrefix, step); }
std::string saving_name(int64_t step) { return fmt::format("{}{}{}", kPrefix, step, kSaving); }

std::optional<CheckpointName> parse_checkpoint_name(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const std::string_view rest = name.substr(kPrefix.size());
  CheckpointName parsed;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), parsed.step);
  if (error != std::errc() || parsed.step < 0) return std::nullopt;
  parsed.suffix = std::string(end, rest.data() + rest.size());
  if (checkpoint_name(parsed.step) + parsed.suffix != name) return std::nullopt;  // leading zeros, "-0"
  if (!parsed.suffix.empty() && parsed.suffix != kSaving && parsed.suffix != kPrevious &&
      parsed.suffix != kDeleting)
    return std::nullopt;
  return parsed;
}

void require_on_this_machine(const std::string& path) {
  // With one slash too: so fs::path leaves a URL.
  const bool is_url =
      path.find("://") != std::string::npos || path.starts_with("s3:/") || path.starts_with("obs:/");
  if (is_url)
    throw InvalidArgument(fmt::format(
        "checkpoints are read and written on this machine, and '{}' is a URL: give what mox::log_dir_of_run() "
        "or mox::checkpoint_path_of_run() answer for a run's own options, or a copy (mox file cp -r)",
        path));
}

// The owner's alone: whoever may read a file can lock it.
DirectoryLock::DirectoryLock(const HeldDirectory& directory)
    : file_(open_kept_file(directory.file(".save-lock"), 0600)) {
  auto warning = std::chrono::steady_clock::now() + kLockPatience;
  while (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
    // A file system without locks gives another error than EWOULDBLOCK; a single writer needs none.
    if (errno != EWOULDBLOCK && errno != EINTR) return;
    if (std::chrono::steady_clock::now() > warning) {
      log_warning(
          fmt::format("another process has been saving a checkpoint in '{}' for {} seconds; this one waits "
                      "for it. Only one run may use a log_dir: end the other one",
                      directory.name(), kLockPatience.count()));
      warning += kLockPatience;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

void remove_leftovers(const std::string& log_dir) {
  std::error_code error;
  std::vector<CheckpointName> leftovers;
  for (fs::directory_iterator it(log_dir, error), end; !error && it != end; it.increment(error)) {
    const auto name = parse_checkpoint_name(it->path().filename().string());
    if (name && !name->suffix.empty()) leftovers.push_back(*name);
  }
  if (error) throw IoError(fmt::format("cannot list the directory '{}': {}", log_dir, error.message()));
  for (const CheckpointName& leftover : leftovers) {
    const std::string path = in(log_dir, leftover.step, leftover.suffix);
    const std::string published = in(log_dir, leftover.step, "");
    if (leftover.suffix == kPrevious && !fs::exists(fs::symlink_status(published))) {
      rename_or_throw(path, published);
      sync_directory(log_dir);
    } else {
      remove_or_throw(path);
    }
  }
}

void publish_checkpoint(const std::string& log_dir, int64_t step, bool can_exchange) {
  const std::string saving = in(log_dir, step, kSaving), published = in(log_dir, step, "");
  if (!fs::exists(fs::symlink_status(published))) {
    rename_or_throw(saving, published);
    sync_directory(log_dir);
    return;
  }
  if (can_exchange &&
      ::renameat2(AT_FDCWD, saving.c_str(), AT_FDCWD, published.c_str(), RENAME_EXCHANGE) == 0) {
    sync_directory(log_dir);
    remove_former(saving);
    return;
  }
  const std::string previous = in(log_dir, step, kPrevious);
  rename_or_throw(published, previous);
  try {
    rename_or_throw(saving, published);
  } catch (...) {
    rename_or_throw(previous, published);
    throw;
  }
  sync_directory(log_dir);
  remove_former(previous);
}

void delete_checkpoint(const std::string& log_dir, int64_t step) {
  const std::string deleting = in(log_dir, step, kDeleting);
  rename_or_throw(in(log_dir, step, ""), deleting);
  remove_or_throw(deleting);
}

}  // namespace mox::internal
