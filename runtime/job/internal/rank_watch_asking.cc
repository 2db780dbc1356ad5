// What the ranks say of themselves: rank 0 asks all, one round at a time, and hands the answers to whoever
// wanted to know.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "runtime/job/internal/rank_watch.h"

namespace mox::internal {
namespace {

using Clock = std::chrono::steady_clock;
// So long rank 0 waits for the answers; who asks rank 0 waits twice as long.
constexpr auto kAnswerTime = std::chrono::seconds(1);

}  // namespace

void RankWatch::set_status(std::function<RankStatus()> status) {
  std::lock_guard lock(mutex_);
  status_ = std::move(status);
}

std::vector<RankStatus> RankWatch::ask_all() {
  std::unique_lock lock(mutex_);
  const int64_t before = answered_;
  if (rank_ == 0) {
    wants_answers_ = true;
    [[maybe_unused]] const ssize_t written = ::write(wake_[1], "x", 1);
  } else {
    tell(peers_[0], "ask");
  }
  if (answers_changed_.wait_for(lock, 2 * kAnswerTime, [&] { return answered_ > before; })) return answers_;
  return std::vector<RankStatus>(names_.size());
}

// Rank 0. A second question during a round gets the answers of that round.
void RankWatch::begin_asking() {
  if (askers_.size() > 1) return;
  asking_until_ = Clock::now() + kAnswerTime;
  heard_.assign(names_.size(), "");
  tell_all("status?");
  note_status(0, "");
}

// Of this rank itself, or what another one has told rank 0.
void RankWatch::note_status(int rank, const std::string& line) {
  std::string text = line;
  if (rank == rank_) {
    std::function<RankStatus()> status;
    {
      std::lock_guard lock(mutex_);
      status = status_;
    }
    RankStatus own;
    own.step = step();
    text = (status ? status() : own).to_line();
    if (rank_ != 0) return tell(peers_[0], "status " + text);
  }
  if (askers_.empty()) return;  // too late
  heard_[rank] = text;
  if (std::ranges::count(heard_, "") == 0) end_asking();
}

void RankWatch::end_asking() {
  const std::string answers = statuses_line(heard_);
  for (const int asker : std::exchange(askers_, {})) {
    if (asker == 0) take_answers(answers);
    for (Peer& peer : peers_)
      if (peer.rank == asker) tell(peer, "statuses " + answers);
  }
}

void RankWatch::take_answers(const std::string& text) {
  std::vector<RankStatus> answers = parse_statuses(text, names_.size());
  std::lock_guard lock(mutex_);
  answers_ = std::move(answers);
  ++answered_;
  answers_changed_.notify_all();
}

}  // namespace mox::internal
