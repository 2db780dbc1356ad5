// Watches over the ranks of a job, beside MPI and independent of it: every rank holds a TCP connection to
// rank 0. The kernel closes it the moment a process dies, however it dies, so the others learn of it at once,
// in whatever they are doing; it also carries the message of a rank that fails.
//
// When the job must end, the process ends here: a message on stderr, once for the whole job, and _exit.
//
// Threads: a thread of its own; all functions may be called from any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "runtime/job/internal/rank_connections.h"
#include "runtime/job/internal/signed_lines.h"
#include "runtime/job/internal/stall_cause.h"
#include "runtime/job/job.h"

namespace mox::internal {

class RankWatch {
 public:
  // Over the connections of rank_connections.h, which it takes: on rank 0 those to all others in their order,
  // on any other rank that to rank 0. `names` are of all ranks: "rank 2 (host b)". What comes over them that
  // is not signed by the other side, as it would be if somebody sat in the middle, ends the job.
  RankWatch(std::span<const RankConnection> connections, int rank, std::vector<std::string> names);
  ~RankWatch();
  RankWatch(const RankWatch&) = delete;
  RankWatch& operator=(const RankWatch&) = delete;

  void set_step(int64_t step) { step_.store(step, std::memory_order_relaxed); }
  int64_t step() const { return step_.load(std::memory_order_relaxed); }

  std::string name_of(int rank) const;

  // What this rank says of itself when another one asks. `status` is called on the watch's thread and must
  // not block.
  void set_status(std::function<RankStatus()> status);
  // Asks all ranks, through rank 0: takes up to two seconds if one does not answer. If rank 0 does not, no
  // other rank answers either.
  std::vector<RankStatus> ask_all();

  // See fail_job. `text` is the whole message.
  [[noreturn]] void end_job(const std::string& text, int status = kJobFailed);

  // This rank has come to the end of its program: waits until all have, so that nobody's end is taken for a
  // loss. A rank that waits for one that is here is lost; it ends the job with a message.
  void leave();
  // Whether `rank` has come to the end of its program, so long ago that what it had sent before is here: that
  // comes by other connections than the word that it has left, and may be behind it.
  bool is_gone(int rank) const;

 private:
  // Any thread may write to a socket at any time, so it is closed with the object; a connection that has
  // ended is only shut down.
  struct Peer {
    Peer(int of_rank, const RankConnection& connection)
        : rank(of_rank), socket(connection.socket), lines(connection.key, of_rank != 0) {}
    int rank, socket;
    bool has_ended = false;  // of the thread, as `received`
    std::string received;
    std::mutex writing;  // lines are signed in the order in which they are sent
    SignedLines lines;
  };

  void loop();
  void handle_line(Peer& peer, const std::string& line);
  void handle_loss(Peer& peer);
  void handle_forgery(Peer& peer);
  void end_connection(Peer& peer);
  void note_left(int rank);
  bool have_all_left() const;  // with mutex_ held
  void begin_asking();
  void note_status(int rank, const std::string& line);
  void end_asking();
  void take_answers(const std::string& text);
  void tell(Peer& peer, const std::string& line);
  void tell_all(const std::string& line);
  [[noreturn]] void print_and_exit(const std::string& text, bool print, int status = kJobFailed);

  int rank_ = 0;
  std::vector<std::string> names_;
  std::deque<Peer> peers_;  // rank 0: all others; others: rank 0
  int wake_[2] = {-1, -1};  // a pipe: something for the thread to do
  std::atomic<int64_t> step_{0};
  std::atomic<bool> ending_{false};

  // Rank 0, of the thread: a round of questions. Its end, the lines so far, and who wants to know.
  std::chrono::steady_clock::time_point asking_until_{};
  std::vector<std::string> heard_;
  std::vector<int> askers_;

  mutable std::mutex mutex_;
  std::condition_variable finished_changed_;
  // Of each rank when this one learnt that it has left; guarded by mutex_, as all below.
  std::vector<std::optional<std::chrono::steady_clock::time_point>> left_at_;
  bool finished_ = false, stop_ = false;
  std::function<RankStatus()> status_;
  bool wants_answers_ = false;  // rank 0 asks for itself
  std::vector<RankStatus> answers_;
  int64_t answered_ = 0;  // rounds that this rank has got answers of
  std::condition_variable answers_changed_;
  std::thread thread_;
};

}  // namespace mox::internal
