// How a rank finds rank 0: at all addresses at the same time, since anybody may be at some of them.
#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <optional>
#include <utility>

#include "runtime/job/internal/handshake.h"
#include "runtime/job/internal/host_addresses.h"
#include "runtime/job/internal/rank_connections.h"

namespace mox::internal {
namespace {

using Clock = std::chrono::steady_clock;
// Strangers may have filled rank 0's queue, or displaced this rank there: then it comes again.
constexpr auto kConnectTime = std::chrono::seconds(5);
constexpr auto kProofTime = std::chrono::seconds(10);
constexpr auto kBetweenAttempts = std::chrono::milliseconds(100);
// Of the first address, the loopback for a rank of the same machine: where nobody is in the way, rank 0 is
// visited once by each rank and not at all of its addresses.
constexpr auto kHeadStart = std::chrono::milliseconds(200);

// The way to rank 0 by one of the addresses, again and again.
class Approach {
 public:
  Approach(const std::string& address, const Invitation& rank_0, int rank, Clock::time_point from)
      : rank_0_(rank_0), rank_(rank), next_(from) {
    to_.sin_family = AF_INET;
    to_.sin_port = htons(rank_0.port);
    inet_pton(AF_INET, address.c_str(), &to_.sin_addr);
  }
  ~Approach() {
    if (socket_ >= 0) ::close(socket_);
  }
  Approach(const Approach&) = delete;
  Approach& operator=(const Approach&) = delete;

  // Gives up an attempt whose time is over, and begins the next one.
  void look() {
    if (Clock::now() < next_) return;
    if (socket_ >= 0) return fail();
    begin();
  }
  Clock::time_point next_look() const { return next_; }
  pollfd waits_for() const {  // poll passes over -1
    return {socket_, static_cast<short>(is_connected_ ? POLLIN : POLLOUT), 0};
  }

  // Something has come. The connection, once it is rank 0's.
  std::optional<RankConnection> go_on() {
    if (!is_connected_) {
      greet();
      return std::nullopt;
    }
    // One byte after the other: what follows the last line is not for us.
    for (char c = 0;;) {
      const ssize_t count = ::recv(socket_, &c, 1, 0);
      if (count < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
      if (count > 0 && c != '\n' && received_.size() < kLongestGreeting) {
        received_ += c;
        continue;
      }
      const std::string line = std::exchange(received_, {});
      if (count <= 0 || c != '\n' || !take(line)) {
        fail();
        return std::nullopt;
      }
      if (is_welcome_) return RankConnection{.socket = std::exchange(socket_, -1), .key = key_};
    }
  }

 private:
  void begin() {
    hello_ = {.rank = rank_, .nonce = random_nonce()};
    key_.clear();
    received_.clear();
    is_connected_ = false;
    next_ = Clock::now() + kConnectTime;
    socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (socket_ < 0 || (::connect(socket_, reinterpret_cast<const sockaddr*>(&to_), sizeof to_) != 0 &&
                        errno != EINPROGRESS))
      fail();
  }
  void fail() {
    if (socket_ >= 0) ::close(std::exchange(socket_, -1));
    next_ = Clock::now() + kBetweenAttempts;
  }
  void greet() {
    int error = 0;
    socklen_t length = sizeof error;
    if (getsockopt(socket_, SOL_SOCKET, SO_ERROR, &error, &length) != 0 || error != 0 ||
        !write_line(socket_, hello_line(hello_)))
      return fail();
    is_connected_ = true;
    next_ = Clock::now() + kProofTime;
  }
  // False if it is not rank 0's.
  bool take(const std::string& line) {
    if (!key_.empty()) {
      // From here on it is written to by those who may wait.
      is_welcome_ = is_same_proof(line, welcome_line(key_)) &&
                    fcntl(socket_, F_SETFL, fcntl(socket_, F_GETFL) & ~O_NONBLOCK) == 0;
      return is_welcome_;
    }
    const auto challenge = parse_challenge(line, rank_0_.secret, hello_);
    if (!challenge || !write_line(socket_, response_line(rank_0_.secret, hello_, challenge->nonce)))
      return false;
    key_ = session_key(rank_0_.secret, hello_, challenge->nonce);
    return true;
  }

  const Invitation& rank_0_;
  int rank_;
  sockaddr_in to_{};
  int socket_ = -1;  // -1: between two attempts
  Clock::time_point next_;
  bool is_connected_ = false, is_welcome_ = false;
  Hello hello_;
  std::string key_;  // once rank 0 has proved who it is
  std::string received_;
};

}  // namespace

RankConnection connect_to_rank_0(const std::string& invitation, int rank, bool is_local,
                                 std::chrono::milliseconds patience) {
  const std::optional<Invitation> rank_0 = parse_invitation(invitation);
  if (!rank_0) cannot_watch("rank 0 has sent no invitation");
  const auto addresses = addresses_to_try(rank_0->addresses, own_addresses(), is_local);
  if (addresses.empty())
    cannot_watch(fmt::format(
        "rank 0 is on another host, but this one has all of its addresses ({}) itself; give each host an "
        "address of its own, at which the others reach it",
        fmt::join(rank_0->addresses, ", ")));
  std::deque<Approach> approaches;
  const auto begin = Clock::now(), until = begin + patience;
  for (const std::string& address : addresses)
    approaches.emplace_back(address, *rank_0, rank, approaches.empty() ? begin : begin + kHeadStart);
  while (Clock::now() < until) {
    std::vector<pollfd> ready;
    auto next = until;
    for (Approach& approach : approaches) {
      approach.look();
      ready.push_back(approach.waits_for());
      next = std::min(next, approach.next_look());
    }
    if (poll(ready.data(), ready.size(), milliseconds_until(next) + 1) < 0) continue;
    for (size_t i = 0; i < approaches.size(); ++i) {
      if (ready[i].revents == 0) continue;
      if (auto connection = approaches[i].go_on()) return *connection;
    }
  }
  cannot_watch(
      fmt::format("rank 0 does not answer at any of its addresses ({})", fmt::join(addresses, ", ")));
}

}  // namespace mox::internal
