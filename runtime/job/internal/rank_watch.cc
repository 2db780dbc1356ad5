#include "runtime/job/internal/rank_watch.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <sstream>

#include "runtime/base/error.h"
#include "runtime/job/job.h"

namespace mox::internal {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kConnectTime = std::chrono::seconds(60);
// How long a rank that fails waits for rank 0 to tell all, before it ends by itself.
constexpr auto kTellTime = std::chrono::seconds(2);
// So long a process that has told the others stays, so that what it said reaches them before its connections
// close.
constexpr auto kLingerTime = std::chrono::milliseconds(300);

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

std::vector<std::string> own_addresses() {
  std::vector<std::string> result = {"127.0.0.1"};
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return result;
  for (const ifaddrs* one = all; one; one = one->ifa_next) {
    if (!one->ifa_addr || one->ifa_addr->sa_family != AF_INET || (one->ifa_flags & IFF_LOOPBACK) ||
        !(one->ifa_flags & IFF_UP))
      continue;
    char text[INET_ADDRSTRLEN];
    const auto* address = reinterpret_cast<const sockaddr_in*>(one->ifa_addr);
    if (inet_ntop(AF_INET, &address->sin_addr, text, sizeof text)) result.emplace_back(text);
  }
  freeifaddrs(all);
  return result;
}

// One line, its end removed, or nothing when the time is over or the connection ends.
std::optional<std::string> read_line(int socket, Clock::time_point until) {
  std::string line;
  for (char c = 0; line.size() < 4096;) {
    pollfd ready{socket, POLLIN, 0};
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    if (left <= 0 || poll(&ready, 1, static_cast<int>(left)) <= 0 || ::recv(socket, &c, 1, 0) != 1)
      return std::nullopt;
    if (c == '\n') return line;
    line += c;
  }
  return std::nullopt;
}

bool write_line(int socket, const std::string& line) {
  const std::string text = line + '\n';
  for (size_t sent = 0; sent < text.size();) {
    const ssize_t count = ::send(socket, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (count <= 0) return false;
    sent += static_cast<size_t>(count);
  }
  return true;
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

int connect_to(const std::string& address, int port, const std::string& greeting) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return -1;
  const timeval patience{5, 0};
  setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);  // also of connect
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(port));
  if (inet_pton(AF_INET, address.c_str(), &to.sin_addr) == 1 &&
      ::connect(socket, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0 &&
      write_line(socket, greeting) && read_line(socket, Clock::now() + std::chrono::seconds(10)) == "welcome")
    return socket;
  ::close(socket);
  return -1;
}

}  // namespace

RankWatch::Listener RankWatch::listen() {
  Listener listener;
  listener.socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in any{};
  any.sin_family = AF_INET;
  socklen_t length = sizeof any;
  if (listener.socket < 0 || ::bind(listener.socket, reinterpret_cast<sockaddr*>(&any), sizeof any) != 0 ||
      ::listen(listener.socket, 4096) != 0 ||
      getsockname(listener.socket, reinterpret_cast<sockaddr*>(&any), &length) != 0)
    refuse("a port to listen on");
  uint64_t secret[2];
  if (getrandom(secret, sizeof secret, 0) != sizeof secret) refuse("random bytes");
  listener.invitation = fmt::format("{:016x}{:016x} {}", secret[0], secret[1], ntohs(any.sin_port));
  for (const std::string& address : own_addresses()) listener.invitation += ' ' + address;
  return listener;
}

RankWatch::RankWatch(const Listener& listener, std::vector<std::string> hosts)
    : hosts_(std::move(hosts)), left_(hosts_.size(), false) {
  const std::string secret = listener.invitation.substr(0, listener.invitation.find(' '));
  const auto until = Clock::now() + kConnectTime;
  while (peers_.size() + 1 < hosts_.size()) {
    pollfd ready{listener.socket, POLLIN, 0};
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    if (left <= 0 || poll(&ready, 1, static_cast<int>(left)) <= 0) {
      errno = ETIMEDOUT;
      refuse("the connections of all ranks to rank 0");
    }
    const int socket = ::accept4(listener.socket, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) continue;
    const auto greeting = read_line(socket, Clock::now() + std::chrono::seconds(5));
    std::istringstream words(greeting.value_or(""));
    std::string told;
    int rank = 0;
    words >> told >> rank;
    const bool known = words && told == secret && rank > 0 && static_cast<size_t>(rank) < hosts_.size();
    if (!known || !write_line(socket, "welcome")) {
      ::close(socket);
      continue;
    }
    peers_.push_back({.rank = rank, .socket = socket, .has_ended = false, .received = {}});
  }
  ::close(listener.socket);
  for (Peer& peer : peers_) watch_connection(peer.socket);
  if (pipe(wake_) != 0) refuse("a pipe");
  thread_ = std::thread([this] { loop(); });
}

RankWatch::RankWatch(const std::string& invitation, int rank, std::vector<std::string> hosts)
    : rank_(rank), hosts_(std::move(hosts)), left_(hosts_.size(), false) {
  std::istringstream words(invitation);
  std::string secret, address;
  int port = 0;
  words >> secret >> port;
  int socket = -1;
  while (socket < 0 && words >> address)
    socket = connect_to(address, port, fmt::format("{} {}", secret, rank));
  if (socket < 0) refuse("a connection to rank 0");
  peers_.push_back({.rank = 0, .socket = socket, .has_ended = false, .received = {}});
  watch_connection(socket);
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

std::string RankWatch::name_of(int rank) const {
  return fmt::format("rank {} (host {})", rank, hosts_[static_cast<size_t>(rank)]);
}

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
      if (count <= 0) {
        ::shutdown(peer.socket, SHUT_RDWR);
        peer.has_ended = true;
        handle_loss(peer);
        continue;
      }
      peer.received.append(bytes, static_cast<size_t>(count));
      for (size_t end; (end = peer.received.find('\n')) != std::string::npos;) {
        const std::string line = peer.received.substr(0, end);
        peer.received.erase(0, end + 1);
        handle_line(peer, line);
      }
    }
    if (!askers_.empty() && Clock::now() >= asking_until_) end_asking();
  }
}

void RankWatch::handle_line(Peer& peer, const std::string& line) {
  const std::string word = line.substr(0, line.find(' '));
  const std::string rest = line.size() > word.size() ? line.substr(word.size() + 1) : "";
  if (word == "fail") {
    if (!ending_.exchange(true)) print_and_exit(on_its_lines(rest), true);
  } else if (word == "end") {
    ending_ = true;
    print_and_exit("", false);
  } else if (word == "ask") {
    askers_.push_back(peer.rank);
    begin_asking();
  } else if (word == "status?") {
    note_status(rank_, "");
  } else if (word == "status") {
    note_status(peer.rank, rest);
  } else if (word == "statuses") {
    take_answers(rest);
  } else if (word == "left") {
    bool all = false;
    {
      std::lock_guard lock(mutex_);
      left_[rank_ == 0 ? static_cast<size_t>(peer.rank) : std::stoul(rest)] = true;
      all = std::ranges::count(left_, false) == 0;
      if (rank_ == 0 && all) finished_ = true;
    }
    if (rank_ == 0) tell_all(all ? "finished" : fmt::format("left {}", peer.rank));
    finished_changed_.notify_all();
  } else if (word == "finished") {
    {
      std::lock_guard lock(mutex_);
      finished_ = true;
    }
    finished_changed_.notify_all();
  }
}

void RankWatch::handle_loss(Peer& peer) {
  {
    std::lock_guard lock(mutex_);
    if (finished_ || stop_) return;
  }
  if (ending_.exchange(true)) return;
  const std::string text = fmt::format(
      "{} was lost when rank {} was at global step {}: its process ended without a word (killed, or out of "
      "memory?) or its "
      "host cannot be reached. The job ends; started again, it goes on from its last checkpoint",
      name_of(peer.rank), rank_, step());
  // If rank 0 is lost, nobody speaks for all.
  print_and_exit(text, rank_ == 0 || rank_ == 1);
}

void RankWatch::tell(const Peer& peer, const std::string& line) {
  write_line(peer.socket, line);  // to one that is gone, nothing
}

void RankWatch::tell_all(const std::string& line) {
  for (const Peer& peer : peers_) tell(peer, line);
}

void RankWatch::print_and_exit(const std::string& text, bool print) {
  if (print) {
    const std::string line = "error: " + text + "\n";
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
  }
  if (rank_ == 0) {
    tell_all("end");
    std::this_thread::sleep_for(kLingerTime);
  }
  _exit(kJobFailed);
}

void RankWatch::end_job(const std::string& text) {
  if (ending_.exchange(true)) {
    // It is ending already; this thread must not go on, nor end it before all are told.
    std::this_thread::sleep_for(kTellTime);
    _exit(kJobFailed);
  }
  if (rank_ == 0) print_and_exit(text, true);
  tell(peers_[0], "fail " + on_one_line(text));
  std::this_thread::sleep_for(kTellTime);  // rank 0 says that all end, which ends this process, too
  print_and_exit(text, true);
}

void RankWatch::leave() {
  bool all = false;
  {
    std::lock_guard lock(mutex_);
    left_[static_cast<size_t>(rank_)] = true;
    all = std::ranges::count(left_, false) == 0;
    if (rank_ == 0 && all) finished_ = true;
  }
  tell_all(rank_ == 0 ? (all ? "finished" : "left 0") : "left");
  std::unique_lock lock(mutex_);
  finished_changed_.wait(lock, [&] { return finished_; });
}

bool RankWatch::has_left(int rank) const {
  std::lock_guard lock(mutex_);
  return left_[static_cast<size_t>(rank)];
}

}  // namespace mox::internal
