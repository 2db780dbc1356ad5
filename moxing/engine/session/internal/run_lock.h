// One training run at a time in a log_dir.
#pragma once

#include <string>

namespace mox::internal {

// Held by a training run on the file `.lock` of its log_dir from before the first look at a checkpoint to the
// end. The system gives it back when the process ends, however it ends; the file itself stays. On a file
// system without locks it protects nothing.
class RunLock {
 public:
  // Makes the directory if there is none. Throws FailedPrecondition, naming the process that holds the lock,
  // if another run uses the directory; IoError if the directory cannot be made or written.
  explicit RunLock(const std::string& log_dir);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  int descriptor_ = -1;
};

}  // namespace mox::internal
