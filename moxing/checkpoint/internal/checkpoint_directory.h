// The directories of checkpoints inside a log_dir: their names, how one is published, replaced and deleted so
// that a crash between any two steps leaves a whole checkpoint, and how the leftovers of a
// crash are recognised.
//
//   checkpoint-<step>            a checkpoint
//   checkpoint-<step>.saving     being written; after a crash, incomplete
//   checkpoint-<step>.previous   moved aside by a replacement on a file system that cannot exchange two
//   names; it is
//                                the checkpoint as long as checkpoint-<step> does not exist
//   checkpoint-<step>.deleting   being deleted
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "moxing/checkpoint/checkpoint.h"
#include "runtime/base/opened_file.h"

namespace mox::internal {

std::string checkpoint_name(int64_t step);
std::string saving_name(int64_t step);

struct CheckpointName {
  int64_t step = 0;
  std::string suffix;  // "", ".saving", ".previous" or ".deleting"
};
// Nothing for a name that is none of the four above.
std::optional<CheckpointName> parse_checkpoint_name(std::string_view name);

// Throws InvalidArgument for a URL: on a disk nothing would be found by that name, and a run would go on as
// if there were no checkpoint.
void require_on_this_machine(const std::string& path);

// Held while a log_dir is changed, which outlives it. Waits for another process or thread that holds it, and
// warns each minute: what is to be saved is not given up for it. Throws IoError if the directory
// cannot be written.
class DirectoryLock {
 public:
  explicit DirectoryLock(const HeldDirectory& directory);
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

 private:
  FileDescriptor file_;
};

// save_checkpoint and prepare_checkpoint_directory; a `log_dir` that a run makes by itself is no link.
std::string save_checkpoint(const std::string& log_dir, const Checkpoint& checkpoint,
                            const CheckpointRetention& retention, DirectoryLink link);
void prepare_checkpoint_directory(const std::string& log_dir, DirectoryLink link);

// The following are for the holder of the lock.

// Brings an interrupted replacement to its end and removes incomplete and half-deleted
// directories. Throws IoError.
void remove_leftovers(const std::string& log_dir);

// Gives the complete, synced directory checkpoint-<step>.saving its final name, durably, and deletes the
// checkpoint that it replaces. `can_exchange` false: act as on a file system that cannot exchange two names
// (for tests). Throws IoError; the former checkpoint then still has its name.
void publish_checkpoint(const std::string& log_dir, int64_t step, bool can_exchange = true);

// Deletes a checkpoint; it is no longer listed from the first moment on. Throws IoError.
void delete_checkpoint(const std::string& log_dir, int64_t step);

}  // namespace mox::internal
