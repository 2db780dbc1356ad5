#include "moxing/engine/session/internal/run_lock.h"

#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "moxing/file/jobs/lock_owner.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/local_name.h"
#include "runtime/base/opened_file.h"

namespace mox::internal {
namespace {

// A process that was killed a moment ago holds its lock until the system has taken it apart.
constexpr std::chrono::seconds kPatience{2};
constexpr mode_t kOwnersAlone = 0600;

std::string unusable(const std::string& log_dir, const IoError& why) {
  return fmt::format(
      "the log_dir '{}' cannot be used: {}. Make it a directory that this user may write, with room "
      "left on its disk, or choose another log_dir.",
      log_dir, why.what());
}

}  // namespace

RunLock::RunLock(const std::string& log_dir) {
  const std::string path = log_dir + "/.lock";
  try {
    make_directories(log_dir);
    descriptor_ = open_kept_file(path, kOwnersAlone).release();
  } catch (const IoError& error) {
    throw_alike(error, unusable(log_dir, error));
  }
  // One that an earlier version made: whoever may read it could hold it.
  [[maybe_unused]] const int changed = ::fchmod(descriptor_, kOwnersAlone);

  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return;  // a file system without locks
    if (std::chrono::steady_clock::now() > deadline) {
      const std::string owner = lock_owner(descriptor_);
      ::close(descriptor_);
      throw FailedPrecondition(
          fmt::format("another run ({}) is training in the log_dir '{}', and two would overwrite each "
                      "other's checkpoints. Wait for it or end it, then run again; or choose another "
                      "log_dir.",
                      owner, log_dir));
    }
    std::this_thread::sleep_for(kBetweenLockAttempts);
  }
  write_lock_owner(descriptor_);
}

RunLock::~RunLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace mox::internal
