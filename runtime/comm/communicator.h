// Communicator: the ranks of a job, and what they do together.
//
// One thread at a time drives all operations under way; it polls and never blocks in one, so that gradients
// travel while the other threads compute: a communication thread of its own or, while it waits, the one that
// waits, which yields between two looks, or sleeps where others use its core. With one rank there is no such
// thread, and nothing is sent.
//
// All ranks must call the same operations in the same order. An operation that waits for a rank for long is
// reported to the listener (see StallListener), which may end the job; the operations themselves
// wait without end.
//
// Threads: `start` and `wait` from any thread; the blocking operations from one thread at a time. An IoError
// of the network comes out of whatever waits.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/comm/operation.h"
#include "runtime/comm/transport.h"

namespace mox {

class Communicator {
 public:
  // A job of one rank.
  Communicator();
  // Tells the ranks' machines to each other: all ranks construct theirs together. `host` is this machine's
  // name, for messages; ranks whose `machine` is the same are on one ("": the name says so).
  explicit Communicator(std::unique_ptr<Transport> transport, const std::string& host = "",
                        const std::string& machine = "");
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  // Among the ranks on the same machine, in the order of their ranks.
  int local_rank() const { return local_rank_; }
  int local_size() const { return static_cast<int>(local_ranks_.size()); }
  const std::string& host(int rank) const { return hosts_[rank]; }

  // Waits until all ranks are here.
  void barrier();
  // Waits until the ranks of this machine are here.
  void local_barrier();
  // Every rank's `data` becomes that of `root`; its length is the same everywhere.
  void broadcast(std::span<std::byte> data, int root = 0);
  // The text of `root`, of any length.
  std::string broadcast_text(std::string_view text, int root = 0);
  // What every rank gave, by rank. Lengths may differ.
  std::vector<std::string> allgather(std::string_view data);
  // The same for data of one length everywhere: one message a pair of ranks.
  std::vector<std::string> allgather_equal(std::string_view data);
  // The sum over all ranks, in the order of the summation tree: the same bits everywhere.
  void allreduce(std::span<float> values);
  void allreduce(std::span<double> values);
  void allreduce(std::span<int64_t> values);

  // An operation under way.
  class Pending;
  // `what` names it in reports of a stall ("bucket 3"). `done` runs on the thread that drives when it is
  // finished, before `wait` returns; one at a time; it must not wait for another operation. With one rank all
  // of it happens in this call.
  std::shared_ptr<Pending> start(std::unique_ptr<Operation> operation, std::string what,
                                 std::function<void()> done = {});
  // Returns when the operation and its `done` are through; rethrows what they threw.
  void wait(const std::shared_ptr<Pending>& pending);

  // What the communication thread has done so far: not what a thread that waits has driven. With one rank
  // nothing. Any thread, until `abandon`.
  struct Work {
    double processor_seconds = 0;
    int64_t messages_sent = 0, bytes_sent = 0;  // of messages that have left
  };
  Work work() const;

  // Ends all operations that are under way, at once and for good; whoever waits gets an IoError. After it the
  // memory of operations may be freed. For the end of a job that has failed.
  void abandon();

  // Called on the thread that drives about once in a tenth of a second while the operation `what` waits for
  // `missing` ranks (sorted): for how long it has, since it last went on.
  using StallListener =
      std::function<void(const std::string& what, std::span<const int> missing, double seconds)>;
  void set_stall_listener(StallListener listener);

  // What holds this rank up: the operation that one of its threads is in `wait` for, or in a blocking call.
  // Operations that are under way while all threads compute hold nobody up.
  struct Wait {
    std::string what;
    std::vector<int> missing;  // the ranks whose messages it lacks, sorted
    double seconds = 0;        // for how long it has
  };
  // The longest of them; none before a tenth of a second. Any thread, also while the network hangs.
  std::optional<Wait> longest_wait() const;

 private:
  class Thread;
  void run(std::unique_ptr<Operation> operation, std::string what);
  void exchange_hosts(const std::string& host, const std::string& machine);

  int rank_ = 0, size_ = 1, local_rank_ = 0;
  std::vector<int> local_ranks_{0};  // on this machine, sorted
  std::vector<std::string> hosts_{""};
  std::unique_ptr<Transport> alone_;  // with one rank
  std::unique_ptr<Thread> thread_;    // with several
};

}  // namespace mox
