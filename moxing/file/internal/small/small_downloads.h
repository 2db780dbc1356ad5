// Small new files of a tree on their way down. As many requests as the copy has threads are under way, but no
// thread waits for one: what has arrived is taken by whoever is free, several at a time, whose MD5s are made
// together, and with them the next requests begin. What does not go well at the first attempt goes on alone,
// as a file of any other size would.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <span>

#include "moxing/file/internal/copy_task.h"

namespace mox::file::internal {

class SmallDownloads : public std::enable_shared_from_this<SmallDownloads> {
 public:
  // Of an object with neither a file nor a part at its local destination.
  static bool takes(const CopyRun& run, const CopyItem& item);
  // Before the workers are waited for. Its end is reported to the run.
  void add(const std::shared_ptr<CopyRun>& run, CopyItem item);

 private:
  struct Download {
    // Of the workers, of whom the client's own thread must not be the last to let go.
    std::shared_ptr<CopyRun> run;
    CopyItem item;
    s3::HttpAttempt attempt;
  };
  using Batch = std::span<const std::shared_ptr<Download>>;

  void begin_some();
  void begin(const std::shared_ptr<Download>& download);
  // On the client's thread, which keeps no owner: not by value, which a caller could copy into.
  void ended(std::shared_ptr<Download>&& download, s3::HttpAttempt attempt);
  void take_ended();
  void finish(Batch batch);
  void go_on_alone(const std::shared_ptr<Download>& download);
  void change_under_way(int by);

  std::mutex mutex_;  // of what follows
  std::deque<std::shared_ptr<Download>> waiting_, ended_;
  int under_way_ = 0;
  int takers_ = 0;  // tasks of take_ended
};

}  // namespace mox::file::internal
