// MD5 digests for the threads of a copy: what more threads wait for than there are cores is made together
// (md5_lanes.h), by one of the threads that wait.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "moxing/file/md5/md5_lanes.h"

namespace mox::file {

class Md5Queue {
 public:
  // `most_at_once`: threads that make digests; 0: as many as there are cores, which are counted when a second
  // thread comes while the first makes one. It takes reading files of the control groups: texts that come one
  // after the other, and short ones, never ask.
  explicit Md5Queue(int most_at_once = 0);

  // 16 bytes. Short texts and few of them are left to OpenSSL. Any thread.
  std::string digest(std::string_view text);

 private:
  struct Waiting {
    std::string_view text;
    Md5Digest digest{};
    bool taken = false, done = false;
  };

  bool may_begin() const;  // with the mutex held
  void digest_some(std::unique_lock<std::mutex>& lock, Waiting& mine);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Waiting*> waiting_;  // for a thread that begins; first who has waited longest
  int under_way_ = 0;              // threads that make digests
  int most_under_way_;             // 0: not counted yet
};

}  // namespace mox::file
