#include "moxing/engine/session/internal/run_lock.h"

#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <climits>
#include <cstring>
#include <thread>

#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/local_name.h"
#include "runtime/base/opened_file.h"

namespace mox::internal {
namespace {

// A process that was killed a moment ago holds its lock until the system has taken it apart.
constexpr std::chrono::seconds kPatience{2};
constexpr std::chrono::milliseconds kBetweenAttempts{20};
constexpr size_t kLongestOwner = 400;
constexpr mode_t kOwnersAlone = 0600;

std::string this_process() {
  char host[HOST_NAME_MAX + 1] = {};
  if (::gethostname(host, sizeof host - 1) != 0) host[0] = '\0';
  return fmt::format("process {} on {}", ::getpid(), host[0] ? host : "a host without a name");
}

std::string owner_of(int descriptor) {
  char text[kLongestOwner];
  const ssize_t got = ::pread(descriptor, text, sizeof text, 0);
  return got > 0 ? std::string(text, got) : "a process that has not said its number";
}

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
      const std::string owner = owner_of(descriptor_);
      ::close(descriptor_);
      throw FailedPrecondition(
          fmt::format("another run ({}) is training in the log_dir '{}', and two would overwrite each "
                      "other's checkpoints. Wait for it or end it, then run again; or choose another "
                      "log_dir.",
                      owner, log_dir));
    }
    std::this_thread::sleep_for(kBetweenAttempts);
  }
  // Only the message of another run needs the owner's name, so a disk too full for it is met
  // where it matters.
  const std::string owner = this_process();
  if (::ftruncate(descriptor_, 0) != 0) return;
  [[maybe_unused]] const ssize_t written = ::pwrite(descriptor_, owner.data(), owner.size(), 0);
}

RunLock::~RunLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace mox::internal
