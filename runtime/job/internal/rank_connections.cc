#include "runtime/job/internal/rank_connections.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <random>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/job/internal/displacement.h"
#include "runtime/job/internal/handshake.h"
#include "runtime/job/internal/host_addresses.h"

namespace mox::internal {
namespace {

using Clock = std::chrono::steady_clock;
// A rank that has connected greets at once.
constexpr auto kGreetingTime = std::chrono::seconds(10);
// Taken before anybody is heard, so that whoever comes again and again does not displace a rank unheard.
constexpr int kMostAtOnce = 16;

[[noreturn]] void cannot_have(const char* what) {
  cannot_watch(fmt::format("{}: {}", what, std::strerror(errno)));
}

// Somebody who has connected to rank 0.
struct Stranger {
  int socket = -1;
  uint32_t address = 0;  // that it comes from
  Clock::time_point until;
  std::string received = {};
  std::optional<Hello> hello = {};  // when it has greeted, and was asked for a proof
  std::string nonce = {};           // that it was asked with
};

enum class Verdict { kWaiting, kStranger, kRank };

// Takes the lines that have arrived.
Verdict judge(Stranger& stranger, const std::string& secret, int ranks) {
  for (size_t end; (end = stranger.received.find('\n')) != std::string::npos;) {
    const std::string line = stranger.received.substr(0, end);
    stranger.received.erase(0, end + 1);
    if (stranger.hello)
      return is_response(line, secret, *stranger.hello, stranger.nonce) ? Verdict::kRank : Verdict::kStranger;
    stranger.hello = parse_hello(line, ranks);
    if (!stranger.hello) return Verdict::kStranger;
    stranger.nonce = random_nonce();
    if (!write_line(stranger.socket, challenge_line(secret, *stranger.hello, stranger.nonce)))
      return Verdict::kStranger;
  }
  return stranger.received.size() > kLongestGreeting ? Verdict::kStranger : Verdict::kWaiting;
}

// What has come; kWaiting also if nothing has.
Verdict hear(Stranger& stranger, const std::string& secret, int ranks) {
  char bytes[256];
  const ssize_t count = ::recv(stranger.socket, bytes, sizeof bytes, MSG_DONTWAIT);
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return Verdict::kWaiting;
  if (count <= 0) return Verdict::kStranger;
  stranger.received.append(bytes, static_cast<size_t>(count));
  return judge(stranger, secret, ranks);
}

void displace_one(std::vector<Stranger>* strangers, std::minstd_rand& chance) {
  std::vector<uint32_t> sources;
  for (const Stranger& stranger : *strangers) sources.push_back(stranger.address);
  std::swap((*strangers)[whom_to_displace(sources, chance)], strangers->back());
  ::close(strangers->back().socket);
  strangers->pop_back();
}

// Those who have connected. There is room for them: as many go as come, should they be more than `most` or
// than the system has room for (it is out of descriptors, or the process is).
void take_strangers(int listener, size_t most, std::minstd_rand& chance, std::vector<Stranger>* strangers) {
  for (int taken = 0; taken < kMostAtOnce;) {
    sockaddr_in from{};
    socklen_t length = sizeof from;
    const int socket = ::accept4(listener, reinterpret_cast<sockaddr*>(&from), &length, SOCK_CLOEXEC);
    if (socket < 0 && (errno == EMFILE || errno == ENFILE)) {
      if (strangers->empty()) cannot_have("the connections of the ranks");
      displace_one(strangers, chance);
      continue;
    }
    if (socket < 0) return;
    while (strangers->size() >= most) displace_one(strangers, chance);
    strangers->push_back(
        {.socket = socket, .address = from.sin_addr.s_addr, .until = Clock::now() + kGreetingTime});
    ++taken;
  }
}

size_t most_strangers_here() {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) cannot_have("the number of files that may be open");
  return most_strangers(files.rlim_cur);
}

}  // namespace

void cannot_watch(const std::string& why) {
  throw IoError("the ranks of the job cannot watch over each other: " + why);
}

int milliseconds_until(Clock::time_point until) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 3'600'000));
}

bool write_line(int socket, std::string_view line) {
  const std::string text = std::string(line) + '\n';
  for (size_t sent = 0; sent < text.size();) {
    const ssize_t count = ::send(socket, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    sent += count;
  }
  return true;
}

RankListener listen_for_ranks() {
  RankListener listener;
  listener.socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_in any{};
  any.sin_family = AF_INET;
  socklen_t length = sizeof any;
  if (listener.socket < 0 || ::bind(listener.socket, reinterpret_cast<sockaddr*>(&any), sizeof any) != 0 ||
      ::listen(listener.socket, 4096) != 0 ||
      getsockname(listener.socket, reinterpret_cast<sockaddr*>(&any), &length) != 0)
    cannot_have("a port to listen on");
  listener.secret = random_nonce();
  std::vector<std::string> addresses = reachable_addresses();
  if (addresses.size() > kMostAddresses) addresses.resize(kMostAddresses);
  listener.invitation =
      invitation_line({.secret = listener.secret, .port = ntohs(any.sin_port), .addresses = addresses});
  return listener;
}

std::vector<RankConnection> accept_ranks(const RankListener& listener, const std::vector<std::string>& names,
                                         std::chrono::milliseconds patience) {
  const int ranks = names.size();
  std::vector<RankConnection> connections(names.size() - 1);
  std::vector<Stranger> strangers;
  const size_t most = most_strangers_here();
  std::minstd_rand chance(std::random_device{}());
  const auto until = Clock::now() + patience;
  const auto is_missing = [&] {
    return std::ranges::find(connections, -1, &RankConnection::socket) != connections.end();
  };
  while (is_missing() && Clock::now() < until) {
    std::vector<pollfd> ready = {{listener.socket, POLLIN, 0}};
    auto next = until;
    for (const Stranger& stranger : strangers) {
      ready.push_back({stranger.socket, POLLIN, 0});
      next = std::min(next, stranger.until);
    }
    if (poll(ready.data(), ready.size(), milliseconds_until(next) + 1) < 0 && errno != EINTR) break;
    const size_t known = strangers.size();
    for (size_t i = 0; i < known; ++i) {
      Stranger& stranger = strangers[i];
      Verdict verdict =
          ready[i + 1].revents != 0 ? hear(stranger, listener.secret, ranks) : Verdict::kWaiting;
      if (verdict == Verdict::kRank) {
        RankConnection& own = connections[static_cast<size_t>(stranger.hello->rank) - 1];
        std::string key = session_key(listener.secret, *stranger.hello, stranger.nonce);
        // The first of a rank; what comes after it knows the secret, but is not that rank, or the rank has
        // come by another address first.
        if (own.socket < 0 && write_line(stranger.socket, welcome_line(key))) {
          own = {.socket = std::exchange(stranger.socket, -1), .key = std::move(key)};
          continue;
        }
        verdict = Verdict::kStranger;
      }
      if (verdict == Verdict::kStranger || Clock::now() >= stranger.until)
        ::close(std::exchange(stranger.socket, -1));
    }
    std::erase_if(strangers, [](const Stranger& stranger) { return stranger.socket < 0; });
    take_strangers(listener.socket, most, chance, &strangers);
  }
  for (const Stranger& stranger : strangers) ::close(stranger.socket);
  ::close(listener.socket);
  if (!is_missing()) return connections;
  std::vector<std::string> late;
  for (size_t i = 0; i < connections.size(); ++i) {
    if (connections[i].socket < 0) late.push_back(names[i + 1]);
    if (connections[i].socket >= 0) ::close(connections[i].socket);
  }
  const size_t count = late.size();
  if (count > 8) late.resize(8);
  cannot_watch(
      fmt::format("{}{} did not connect to rank 0 in {:.0f} s; is there a firewall between the hosts?",
                  fmt::join(late, ", "), count > 8 ? fmt::format(" and {} others", count - 8) : "",
                  std::chrono::duration<double>(patience).count()));
}

}  // namespace mox::internal
