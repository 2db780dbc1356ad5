// Saves checkpoints on a thread of its own, so that training goes on while the disk works.
//
//   CheckpointWriter writer(log_dir, {.keep_last = 5});
//   writer.submit(checkpoint);  // as often as they are due
//   writer.wait();            // at the end: all are durable, or the error is thrown
//
// At most two checkpoints are held: one being saved and one waiting. `submit` blocks while one is waiting, so
// that a slow disk slows training down instead of filling memory, and none is dropped.
//
// Errors of a save are thrown by the next call of `submit` or `wait`, each once, as save_checkpoint threw
// them. The writer can be used further after an error.
//
// Threads: any number may call; each error reaches one of them.
#pragma once

#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "moxing/checkpoint/checkpoint.h"
#include "runtime/base/opened_file.h"

namespace mox {

class CheckpointWriter {
 public:
  // Makes `log_dir` ready (prepare_checkpoint_directory), so a directory that cannot be written is an IoError
  // here, before training; so is a link where `link` says that the directory is none. Throws InvalidArgument
  // for a retention that save_checkpoint does not take.
  explicit CheckpointWriter(std::string log_dir, CheckpointRetention retention = {},
                            DirectoryLink link = DirectoryLink::kFollowed);

  // Saves what was submitted and returns then. An error that nobody has asked for is logged.
  ~CheckpointWriter();

  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  // Queues a checkpoint. Its arrays must be clones: training goes on to write the originals. If an earlier
  // save failed, throws that error and does not take this one.
  void submit(Checkpoint checkpoint);

  // Returns when all that was submitted is durable. Throws the error of an earlier save.
  void wait();

  // The path of the newest checkpoint that is durable; nothing before the first.
  std::optional<std::string> last_saved() const;

 private:
  void work();
  void throw_pending_error(std::unique_lock<std::mutex>& lock);

  const std::string log_dir_;
  const CheckpointRetention retention_;
  const DirectoryLink link_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Checkpoint> waiting_;
  bool saving_ = false;
  bool stop_ = false;
  std::exception_ptr error_;
  std::optional<std::string> last_saved_;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace mox
