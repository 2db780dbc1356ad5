#include "runtime/job/internal/rank_connections.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/job/internal/handshake.h"

namespace mox::internal {
namespace {

using Clock = std::chrono::steady_clock;
// A rank that has connected greets at once.
constexpr auto kGreetingTime = std::chrono::seconds(10);
constexpr auto kBetweenAttempts = std::chrono::milliseconds(100);
// Connections that have not proved anything; of more the oldest is closed.
constexpr size_t kMostStrangers = 1024;
// Taken before anybody is heard, so that whoever comes again and again does not displace a rank unheard.
constexpr int kMostAtOnce = 16;
constexpr std::string_view kLoopback = "127.";

[[noreturn]] void cannot_watch(const std::string& why) {
  throw IoError("the ranks of the job cannot watch over each other: " + why);
}
[[noreturn]] void cannot_have(const char* what) {
  cannot_watch(fmt::format("{}: {}", what, std::strerror(errno)));
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

int milliseconds_until(Clock::time_point until) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 3'600'000));
}

// One line, its end removed, or nothing when the time is over, the connection ends or the line is too long.
std::optional<std::string> read_greeting(int socket, Clock::time_point until) {
  std::string line;
  for (char c = 0; line.size() <= kLongestGreeting; line += c) {
    pollfd ready{socket, POLLIN, 0};
    if (poll(&ready, 1, milliseconds_until(until)) <= 0 || ::recv(socket, &c, 1, 0) != 1) return std::nullopt;
    if (c == '\n') return line;
  }
  return std::nullopt;
}

// Somebody who has connected to rank 0.
struct Stranger {
  int socket = -1;
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

// Those who have connected. There is room for them: as many of the oldest as come go, should they be too many
// for us or for the system (it is out of descriptors, or the process is).
void take_strangers(int listener, std::vector<Stranger>* strangers) {
  const auto forget_the_oldest = [&] {
    ::close(strangers->front().socket);
    strangers->erase(strangers->begin());
  };
  for (int taken = 0; taken < kMostAtOnce;) {
    const int socket = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0 && (errno == EMFILE || errno == ENFILE)) {
      if (strangers->empty()) cannot_have("the connections of the ranks");
      forget_the_oldest();
      continue;
    }
    if (socket < 0) return;
    if (strangers->size() == kMostStrangers) forget_the_oldest();
    strangers->push_back({.socket = socket, .until = Clock::now() + kGreetingTime});
    ++taken;
  }
}

int connect_and_prove(const std::string& address, uint16_t port, const std::string& secret, int rank) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return -1;
  const timeval patience{5, 0};
  setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);  // also of connect
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  const Hello hello{.rank = rank, .nonce = random_nonce()};
  const auto until = Clock::now() + kGreetingTime;
  const auto prove = [&] {
    if (inet_pton(AF_INET, address.c_str(), &to.sin_addr) != 1 ||
        ::connect(socket, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0 ||
        !write_line(socket, hello_line(hello)))
      return false;
    const auto challenge = parse_challenge(read_greeting(socket, until).value_or(""), secret, hello);
    return challenge && write_line(socket, response_line(secret, hello, challenge->nonce)) &&
           read_greeting(socket, until) == std::string(kWelcome);
  };
  if (prove()) return socket;
  ::close(socket);
  return -1;
}

}  // namespace

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
  listener.invitation =
      invitation_line({.secret = listener.secret, .port = ntohs(any.sin_port), .addresses = own_addresses()});
  return listener;
}

std::vector<int> accept_ranks(const RankListener& listener, const std::vector<std::string>& names,
                              std::chrono::milliseconds patience) {
  const int ranks = names.size();
  std::vector<int> sockets(names.size() - 1, -1);
  std::vector<Stranger> strangers;
  const auto until = Clock::now() + patience;
  const auto is_missing = [&] { return std::ranges::find(sockets, -1) != sockets.end(); };
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
        int& socket = sockets[static_cast<size_t>(stranger.hello->rank) - 1];
        // The first of a rank; what comes after it knows the secret, but is not that rank.
        if (socket < 0 && write_line(stranger.socket, kWelcome)) {
          socket = std::exchange(stranger.socket, -1);
          continue;
        }
        verdict = Verdict::kStranger;
      }
      if (verdict == Verdict::kStranger || Clock::now() >= stranger.until)
        ::close(std::exchange(stranger.socket, -1));
    }
    std::erase_if(strangers, [](const Stranger& stranger) { return stranger.socket < 0; });
    take_strangers(listener.socket, &strangers);
  }
  for (const Stranger& stranger : strangers) ::close(stranger.socket);
  ::close(listener.socket);
  if (!is_missing()) return sockets;
  std::vector<std::string> late;
  for (size_t i = 0; i < sockets.size(); ++i) {
    if (sockets[i] < 0) late.push_back(names[i + 1]);
    if (sockets[i] >= 0) ::close(sockets[i]);
  }
  const size_t count = late.size();
  if (count > 8) late.resize(8);
  cannot_watch(
      fmt::format("{}{} did not connect to rank 0 in {:.0f} s; is there a firewall between the hosts?",
                  fmt::join(late, ", "), count > 8 ? fmt::format(" and {} others", count - 8) : "",
                  std::chrono::duration<double>(patience).count()));
}

int connect_to_rank_0(const std::string& invitation, int rank, bool is_local,
                      std::chrono::milliseconds patience) {
  const std::optional<Invitation> rank_0 = parse_invitation(invitation);
  if (!rank_0) cannot_watch("rank 0 has sent no invitation");
  // Again, should strangers have filled rank 0's queue.
  for (const auto until = Clock::now() + patience; Clock::now() < until;) {
    for (const std::string& address : rank_0->addresses) {
      if (address.starts_with(kLoopback) && !is_local) continue;
      if (const int socket = connect_and_prove(address, rank_0->port, rank_0->secret, rank); socket >= 0)
        return socket;
    }
    std::this_thread::sleep_for(kBetweenAttempts);
  }
  cannot_watch(
      fmt::format("rank 0 does not answer at any of its addresses ({})", fmt::join(rank_0->addresses, ", ")));
}

}  // namespace mox::internal
