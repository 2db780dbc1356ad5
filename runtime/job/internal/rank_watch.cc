#include "runtime/job/internal/rank_watch.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "runtime/base/error.h"
#include "runtime/job/internal/rank_connections.h"
#include "runtime/job/internal/watch_message.h"
#include "runtime/job/job.h"
#include "runtime/text/printable.h"

namespace mox::internal {
namespace {

using Clock = std::chrono::steady_clock;
// How long a rank that fails waits for rank 0 to tell all, before it ends by itself.
constexpr auto kTellTime = std::chrono::seconds(2);
// So long a process that has told the others stays, so that what it said reaches them before
// its connections close.
constexpr auto kLingerTime = std::chrono::milliseconds(300);
// What a rank has sent before it left may still be on the way for so long, on a busy machine or
// a slow network.
constexpr auto kOnTheWayTime = std::chrono::seconds(5);

[[noreturn]] void refuse(const char* what) {
  throw IoError(
      fmt::format("the ranks of the job cannot watch over each other: {}: {}", what, std::strerror(errno)));
}

// A host that loses its power closes nothing: the kernel asks one that is silent every two seconds, and gives
// up after twelve. While something written is unacknowledged it asks nothing, and would send it again for a
// quarter of an hour: that, too, it gives up after twelve seconds.
void watch_connection(int socket) {
  const int on = 1, idle = 2, interval = 2, count = 5;
  const int patience_ms = 1000 * (idle + interval * count);
  setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
  setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &patience_ms, sizeof patience_ms);
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

// A message of several lines as one.
std::string on_one_line(std::string text) {
  std::ranges::replace(text, '\n', '\v');
  return text;
}
std::string on_its_lines(std::string text) {
  std::ranges::replace(text, '\v', '\n');
  return text;
}

}  // namespace

RankWatch::RankWatch(std::span<const RankConnection> connections, int rank, std::vector<std::string> names)
    : rank_(rank), names_(std::move(names)), left_at_(names_.size()) {
  for (size_t i = 0; i < connections.size(); ++i) {
    watch_connection(connections[i].socket);
    peers_.emplace_back(rank == 0 ? static_cast<int>(i) + 1 : 0, connections[i]);
  }
  if (pipe(wake_) != 0) refuse("a pipe");
  thread_ = std::thread([this] { loop(); });
}

RankWatch::~RankWatch() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  [[maybe_unused]] const ssize_t written = ::write(wake_[1], "x", 1);
  thread_.join();
  for (const Peer& peer : peers_) ::close(peer.socket);
  ::close(wake_[0]);
  ::close(wake_[1]);
}

std::string RankWatch::name_of(int rank) const { return names_[rank]; }

void RankWatch::loop() {
  for (;;) {
    std::vector<pollfd> ready = {{wake_[0], POLLIN, 0}};
    for (const Peer& peer : peers_)
      ready.push_back({peer.has_ended ? -1 : peer.socket, POLLIN, 0});  // poll passes over -1
    int patience = -1;
    if (!askers_.empty()) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(asking_until_ - Clock::now()).count();
      patience = static_cast<int>(std::max<int64_t>(left, 0));
    }
    if (poll(ready.data(), ready.size(), patience) < 0) continue;
    bool asks = false;
    {
      std::lock_guard lock(mutex_);
      if (stop_) return;
      asks = std::exchange(wants_answers_, false);
    }
    if (ready[0].revents != 0) {
      char bytes[64];
      [[maybe_unused]] const ssize_t count = ::read(wake_[0], bytes, sizeof bytes);
    }
    if (asks) {
      askers_.push_back(0);
      begin_asking();
    }
    for (size_t i = 0; i < peers_.size(); ++i) {
      Peer& peer = peers_[i];
      if (ready[i + 1].revents == 0) continue;
      char bytes[4096];
      const ssize_t count = ::recv(peer.socket, bytes, sizeof bytes, 0);
      if (count < 0 && errno == EINTR) continue;
      if (count > 0) peer.received.append(bytes, static_cast<size_t>(count));
      if (count <= 0 || peer.received.size() > kLongestMessage) {  // no rank says so much
        end_connection(peer);
        handle_loss(peer);
        continue;
      }
      for (size_t end; !peer.has_ended && (end = peer.received.find('\n')) != std::string::npos;) {
        const auto line = peer.lines.read(std::string_view(peer.received).substr(0, end));
        peer.received.erase(0, end + 1);
        if (line) {
          handle_line(peer, *line);
        } else {
          end_connection(peer);
          handle_forgery(peer);
        }
      }
    }
    if (!askers_.empty() && Clock::now() >= asking_until_) end_asking();
  }
}

void RankWatch::handle_line(Peer& peer, const std::string& line) {
  using Kind = WatchMessage::Kind;
  const WatchMessage message = parse_message(line, static_cast<int>(names_.size()));
  switch (message.kind) {
    case Kind::kNone:
      return;
    case Kind::kFail:
      if (!ending_.exchange(true)) print_and_exit(on_its_lines(message.text), true, message.number);
      return;
    case Kind::kEnd:
      ending_ = true;
      print_and_exit("", false, message.number);
    case Kind::kAsk:
      askers_.push_back(peer.rank);
      return begin_asking();
    case Kind::kStatusWanted:
      return note_status(rank_, "");
    case Kind::kStatus:
      return note_status(peer.rank, message.text);
    case Kind::kStatuses:
      return take_answers(message.text);
    case Kind::kLeft:
      return note_left(rank_ == 0 ? peer.rank : message.number);
    case Kind::kFinished: {
      const std::lock_guard lock(mutex_);
      finished_ = true;
    }
      finished_changed_.notify_all();
  }
}

void RankWatch::end_connection(Peer& peer) {
  ::shutdown(peer.socket, SHUT_RDWR);
  peer.has_ended = true;
}

bool RankWatch::have_all_left() const {
  return std::ranges::all_of(left_at_, [](const auto& at) { return at.has_value(); });
}

void RankWatch::note_left(int rank) {
  if (rank < 0) return;
  bool all = false;
  {
    std::lock_guard lock(mutex_);
    left_at_[rank] = Clock::now();
    all = have_all_left();
    if (rank_ == 0 && all) finished_ = true;
  }
  if (rank_ == 0) tell_all(all ? "finished" : fmt::format("left {}", rank));
  finished_changed_.notify_all();
}

void RankWatch::handle_loss(Peer& peer) {
  {
    std::lock_guard lock(mutex_);
    if (finished_ || stop_) return;
  }
  if (ending_.exchange(true)) return;
  const std::string text = fmt::format(
      "{} was lost when rank {} was at global step {}: its process ended without a word (killed, or out of "
      "memory?) or its host cannot be reached. The job ends; started again, it goes on from its last "
      "checkpoint",
      name_of(peer.rank), rank_, step());
  // If rank 0 is lost, nobody speaks for all.
  print_and_exit(text, rank_ == 0 || rank_ == 1);
}

// Nobody else speaks of it: to rank 0 this rank is then one whose connection has ended.
void RankWatch::handle_forgery(Peer& peer) {
  {
    std::lock_guard lock(mutex_);
    if (finished_ || stop_) return;
  }
  if (ending_.exchange(true)) return;
  print_and_exit(
      fmt::format(
          "what has come to rank {} over its connection with {} is not what {} has said: somebody between "
          "the two hosts writes into it. The job ends; started again, on a network that others do not "
          "reach, it goes on from its last checkpoint",
          rank_, name_of(peer.rank), peer.rank == 0 ? "rank 0" : "that rank"),
      true);
}

void RankWatch::tell(Peer& peer, const std::string& line) {
  const std::lock_guard lock(peer.writing);
  write_line(peer.socket, peer.lines.sign(line));  // to one that is gone, nothing
}

void RankWatch::tell_all(const std::string& line) {
  for (Peer& peer : peers_) tell(peer, line);
}

void RankWatch::print_and_exit(const std::string& text, bool print, int status) {
  if (print) {
    const std::string line = "error: " + printable_message(text) + "\n";
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
  }
  if (rank_ == 0) {
    tell_all(fmt::format("end {}", status));
    std::this_thread::sleep_for(kLingerTime);
  }
  _exit(status);
}

void RankWatch::end_job(const std::string& text, int status) {
  if (ending_.exchange(true)) {
    // It is ending already; this thread must not go on, nor end it before all are told.
    std::this_thread::sleep_for(kTellTime);
    _exit(status);
  }
  if (rank_ == 0) print_and_exit(text, true, status);
  tell(peers_[0], fmt::format("fail {} {}", status, on_one_line(text)));
  std::this_thread::sleep_for(kTellTime);  // rank 0 says that all end, which ends this process, too
  print_and_exit(text, true, status);
}

void RankWatch::leave() {
  bool all = false;
  {
    std::lock_guard lock(mutex_);
    left_at_[rank_] = Clock::now();
    all = have_all_left();
    if (rank_ == 0 && all) finished_ = true;
  }
  tell_all(rank_ == 0 ? (all ? "finished" : "left 0") : "left");
  std::unique_lock lock(mutex_);
  finished_changed_.wait(lock, [&] { return finished_; });
}

bool RankWatch::is_gone(int rank) const {
  std::lock_guard lock(mutex_);
  return left_at_[rank] && Clock::now() - *left_at_[rank] >= kOnTheWayTime;
}

}  // namespace mox::internal
