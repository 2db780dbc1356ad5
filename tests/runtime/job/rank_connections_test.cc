// How ranks find rank 0 among strangers: who is silent, sends garbage, replays, comes first, or plays rank 0.
#include "runtime/job/internal/rank_connections.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "runtime/base/error.h"
#include "runtime/job/internal/handshake.h"
#include "runtime/job/internal/host_addresses.h"
#include "runtime/job/internal/watch_message.h"
#include "tests/support/message_of.h"

namespace mox::internal {
namespace {

using testing::HasSubstr;

std::string word(const std::string& text, int number) {
  size_t begin = 0;
  for (; number > 0; --number) begin = text.find(' ', begin) + 1;
  return text.substr(begin, text.find(' ', begin) - begin);
}

uint16_t port_of(const std::string& invitation) {
  return static_cast<uint16_t>(std::stoi(word(invitation, 1)));
}

sockaddr_in loopback(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

int stranger_at(uint16_t port, const std::string& says) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in to = loopback(port);
  EXPECT_EQ(::connect(socket, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  if (!says.empty()) {
    EXPECT_TRUE(write_line(socket, says));
  }
  return socket;
}

const std::vector<std::string> kNames = {"rank 0 (host a)", "rank 1 (host b)", "rank 2 (host c)"};

TEST(RankConnections, AreMadeAmongStrangersWithoutDelay) {
  const RankListener listener = listen_for_ranks();
  const uint16_t port = port_of(listener.invitation);
  const Hello hello{.rank = 1, .nonce = random_nonce()};
  std::vector<int> strangers;
  for (int i = 0; i < 40; ++i) strangers.push_back(stranger_at(port, ""));
  for (const std::string& says :
       {std::string("GET / HTTP/1.1"), listener.secret + " 1", hello_line(hello), std::string(5000, 'x'),
        hello_line({.rank = 0, .nonce = hello.nonce}), std::string("hello 99999999999999999999 x")})
    strangers.push_back(stranger_at(port, says));
  // Has greeted as rank 1 before it, and answers with a proof of somebody else's.
  strangers.push_back(stranger_at(port, hello_line(hello)));
  write_line(strangers.back(), response_line("another secret", hello, random_nonce()));
  std::vector<int> sockets(3, -1);
  std::vector<std::thread> ranks;
  for (const int rank : {2, 1})
    ranks.emplace_back(
        [&, rank] { sockets[rank] = connect_to_rank_0(listener.invitation, rank, true).socket; });
  const auto accepted = accept_ranks(listener, kNames, std::chrono::seconds(60));
  for (std::thread& rank : ranks) rank.join();
  ASSERT_EQ(accepted.size(), 2U);
  for (const int rank : {1, 2}) {  // each is connected to the rank of its place
    char heard = 0;
    ASSERT_TRUE(write_line(sockets[rank], std::to_string(rank)));
    ASSERT_EQ(::recv(accepted[static_cast<size_t>(rank) - 1].socket, &heard, 1, 0), 1);
    EXPECT_EQ(heard, '0' + rank);
  }
  for (const int socket : strangers) ::close(socket);
  for (const RankConnection& connection : accepted) ::close(connection.socket);
  for (const int rank : {1, 2}) ::close(sockets[rank]);
}

TEST(RankConnections, NamesWhoHasNotComeAndRefusesASecondOne) {
  const RankListener listener = listen_for_ranks();
  std::thread first([&] { ::close(connect_to_rank_0(listener.invitation, 1, true).socket); });
  const std::string text =
      message_of<IoError>([&] { accept_ranks(listener, kNames, std::chrono::milliseconds(1500)); });
  first.join();
  EXPECT_THAT(text, HasSubstr("rank 2 (host c) did not connect to rank 0"));
  EXPECT_THAT(text, testing::Not(HasSubstr("rank 1")));
}

// More silent ones than the process may have files open: some of them go, and the rank that comes
// last is heard.
TEST(RankConnections, AreMadeWhereStrangersHoldAllThatMayBeOpen) {
  const RankListener listener = listen_for_ranks();
  const uint16_t port = port_of(listener.invitation);
  std::vector<int> strangers;
  for (int i = 0; i < 100; ++i) strangers.push_back(stranger_at(port, ""));
  int connected = -1;
  std::thread rank([&] { connected = connect_to_rank_0(listener.invitation, 1, true).socket; });
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // it has its descriptor
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next = ::dup(0);
  ::close(next);
  const rlimit few{.rlim_cur = static_cast<rlim_t>(next) + 8, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  const auto begin = std::chrono::steady_clock::now();
  const auto accepted = accept_ranks(listener, {"0", "1"}, std::chrono::seconds(60));
  const auto took = std::chrono::steady_clock::now() - begin;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  rank.join();
  EXPECT_LT(took, std::chrono::seconds(8)) << "before the strangers' time to greet is over";
  for (const int socket : strangers) ::close(socket);
  ::close(accepted.at(0).socket);
  ::close(connected);
}

// Another user's process at rank 0's port of an address, which takes whoever comes for a rank.
class FalseRank0 {
 public:
  explicit FalseRank0(uint32_t address) : server_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in own = loopback(0);
    own.sin_addr.s_addr = htonl(address);
    socklen_t length = sizeof own;
    EXPECT_EQ(::bind(server_, reinterpret_cast<sockaddr*>(&own), sizeof own), 0);
    EXPECT_EQ(::listen(server_, 10), 0);
    EXPECT_EQ(getsockname(server_, reinterpret_cast<sockaddr*>(&own), &length), 0);
    port_ = ntohs(own.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~FalseRank0() {
    if (thread_.joinable()) end();
  }
  uint16_t port() const { return port_; }
  // All that was said to it.
  std::string end() {
    ::shutdown(server_, SHUT_RDWR);
    thread_.join();
    ::close(server_);
    return heard_;
  }

 private:
  void serve() {
    for (int socket; (socket = ::accept(server_, nullptr, nullptr)) >= 0; ::close(socket)) {
      char bytes[512];
      for (const char* answer : {"challenge", "welcome"}) {
        const ssize_t count = ::recv(socket, bytes, sizeof bytes, 0);
        if (count <= 0) break;
        heard_.append(bytes, static_cast<size_t>(count));
        write_line(socket, answer);
      }
    }
  }

  int server_;
  uint16_t port_ = 0;
  std::string heard_;
  std::thread thread_;
};

constexpr uint32_t kLoopbackAddress = INADDR_LOOPBACK, kSecondLoopbackAddress = INADDR_LOOPBACK + 1;

TEST(RankConnections, AFalseRank0LearnsNothingAndIsNotBelieved) {
  FalseRank0 false_rank_0(kLoopbackAddress);
  const std::string secret = random_nonce();
  const std::string invitation = fmt::format("{} {} 127.0.0.1", secret, false_rank_0.port());
  EXPECT_THAT(
      message_of<IoError>([&] { connect_to_rank_0(invitation, 1, true, std::chrono::milliseconds(500)); }),
      HasSubstr("rank 0 does not answer at any of its addresses (127.0.0.1)"));
  const std::string heard = false_rank_0.end();
  EXPECT_THAT(heard, testing::StartsWith("hello 1 "));
  EXPECT_THAT(heard, testing::Not(HasSubstr("proof"))) << "nothing that follows from the secret either";
  EXPECT_THAT(heard, testing::Not(HasSubstr(secret)));
}

// Whoever holds rank 0's port on the loopback of another host is not even asked.
TEST(RankConnections, TheLoopbackIsForRanksOfTheSameMachine) {
  FalseRank0 false_rank_0(kLoopbackAddress), another(kSecondLoopbackAddress);
  for (const FalseRank0* one : {&false_rank_0, &another}) {
    const std::string invitation = fmt::format("{} {} 127.0.0.1 127.0.0.2", random_nonce(), one->port());
    EXPECT_THROW(connect_to_rank_0(invitation, 1, false, std::chrono::milliseconds(300)), IoError);
  }
  EXPECT_EQ(false_rank_0.end(), "");
  EXPECT_EQ(another.end(), "");
}

// A bridge of containers has the same address on every host: what this host has itself is not rank 0's.
TEST(RankConnections, AnAddressOfThisHostIsNotThatOfAnotherOne) {
  const std::vector<std::string> of_rank_0 = {"127.0.0.1", "10.0.0.5", "172.17.0.1", "192.168.122.1"};
  const std::vector<std::string> own = {"127.0.0.1", "10.0.0.6", "172.17.0.1", "192.168.122.1"};
  EXPECT_THAT(addresses_to_try(of_rank_0, own, false), testing::ElementsAre("10.0.0.5"));
  EXPECT_EQ(addresses_to_try(of_rank_0, own, true), of_rank_0);
  EXPECT_THAT(own_addresses(), testing::IsSupersetOf(reachable_addresses()));
  for (const std::string& address : own_addresses()) {
    if (address.starts_with("127.")) continue;
    in_addr binary{};
    ASSERT_EQ(inet_pton(AF_INET, address.c_str(), &binary), 1);
    FalseRank0 false_rank_0(ntohl(binary.s_addr));
    EXPECT_THAT(message_of<IoError>([&] {
                  connect_to_rank_0(fmt::format("{} {} {}", random_nonce(), false_rank_0.port(), address), 1,
                                    false, std::chrono::milliseconds(300));
                }),
                HasSubstr("this one has all of its addresses (" + address + ") itself"));
    EXPECT_EQ(false_rank_0.end(), "");
  }
}

// Strangers hold rank 0's port at addresses that come before the one where it is.
TEST(RankConnections, WhoIsSilentAtAnAddressOfRank0DelaysNobody) {
  RankListener listener{.socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0),
                        .secret = random_nonce(),
                        .invitation = {}};
  sockaddr_in own = loopback(0);
  socklen_t length = sizeof own;
  ASSERT_EQ(::bind(listener.socket, reinterpret_cast<sockaddr*>(&own), sizeof own), 0);
  ASSERT_EQ(::listen(listener.socket, 10), 0);
  ASSERT_EQ(getsockname(listener.socket, reinterpret_cast<sockaddr*>(&own), &length), 0);
  std::vector<int> silent;
  for (const uint32_t address : {INADDR_LOOPBACK + 1, INADDR_LOOPBACK + 2}) {
    silent.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in beside = own;
    beside.sin_addr.s_addr = htonl(address);
    ASSERT_EQ(::bind(silent.back(), reinterpret_cast<sockaddr*>(&beside), sizeof beside), 0);
    ASSERT_EQ(::listen(silent.back(), 10), 0);
  }
  listener.invitation =
      fmt::format("{} {} 127.0.0.2 127.0.0.3 127.0.0.4 127.0.0.1", listener.secret, ntohs(own.sin_port));
  const auto begin = std::chrono::steady_clock::now();
  RankConnection connected;
  std::thread rank([&] { connected = connect_to_rank_0(listener.invitation, 1, true); });
  const auto accepted = accept_ranks(listener, {"0", "1"}, std::chrono::seconds(60));
  rank.join();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(4));
  EXPECT_EQ(accepted.at(0).key, connected.key);
  for (const int socket : silent) ::close(socket);
  ::close(accepted.at(0).socket);
  ::close(connected.socket);
}

TEST(RankConnections, WhatIsNoInvitationIsNotFollowed) {
  const std::string secret = random_nonce();
  for (const std::string& text :
       {std::string("00 1"), std::string(), secret, secret + " 0 127.0.0.1", secret + " port 127.0.0.1",
        secret + " 65536 127.0.0.1", secret + " 80", secret + " 80 localhost",
        secret + " 80 127.0.0.1  10.0.0.1", std::string("a secret 80 127.0.0.1")})
    EXPECT_THAT(message_of<IoError>([&] { connect_to_rank_0(text, 1, false); }), HasSubstr("no invitation"))
        << text;
  const auto invitation = parse_invitation(secret + " 80 127.0.0.1 10.0.0.1");
  EXPECT_EQ(invitation->addresses.size(), 2U);
  EXPECT_EQ(invitation_line(*invitation), secret + " 80 127.0.0.1 10.0.0.1");
  std::string of_many = secret + " 80";
  for (size_t i = 0; i < kMostAddresses; ++i) of_many += " 10.0.0.1";
  EXPECT_TRUE(parse_invitation(of_many));
  EXPECT_FALSE(parse_invitation(of_many + " 10.0.0.1"));
}

TEST(Handshake, ProvesBothSides) {
  const std::string secret = random_nonce(), nonce = random_nonce();
  const Hello hello{.rank = 3, .nonce = random_nonce()};
  const auto parsed = parse_hello(hello_line(hello), 4);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->nonce, hello.nonce);
  EXPECT_FALSE(parse_hello(hello_line(hello), 3));
  const std::string challenge = challenge_line(secret, hello, nonce);
  ASSERT_TRUE(parse_challenge(challenge, secret, hello));
  EXPECT_EQ(parse_challenge(challenge, secret, hello)->nonce, nonce);
  EXPECT_FALSE(parse_challenge(challenge, random_nonce(), hello));
  EXPECT_FALSE(parse_challenge(challenge, secret, {.rank = 2, .nonce = hello.nonce}));
  const std::string response = response_line(secret, hello, nonce);
  const std::string key = session_key(secret, hello, nonce);
  EXPECT_NE(key, session_key(secret, hello, random_nonce()));
  EXPECT_NE(key, session_key(random_nonce(), hello, nonce));
  for (const std::string& line : {challenge, response})
    EXPECT_THAT(line, testing::Not(HasSubstr(key))) << "it is not sent";
  EXPECT_TRUE(is_response(response, secret, hello, nonce));
  EXPECT_FALSE(is_response(response, secret, hello, random_nonce()));  // a replay
  // What rank 0 has sent is no proof of a rank.
  EXPECT_FALSE(is_response("proof " + challenge.substr(challenge.rfind(' ') + 1), secret, hello, nonce));
  for (const std::string& line : {challenge, response, hello_line(hello), welcome_line(key)})
    EXPECT_LE(line.size(), kLongestGreeting);
}

TEST(WatchMessage, HasItsFieldsWithinTheirBounds) {
  using Kind = WatchMessage::Kind;
  EXPECT_EQ(parse_message("fail 2 what is wrong", 4).text, "what is wrong");
  EXPECT_EQ(parse_message("fail 2 what is wrong", 4).number, 2);
  EXPECT_EQ(parse_message("end 1", 4).kind, Kind::kEnd);
  EXPECT_EQ(parse_message("end 75", 4).number, 75);  // kExitInterrupted
  EXPECT_EQ(parse_message("fail 75 was interrupted", 4).text, "was interrupted");
  EXPECT_EQ(parse_message("left", 4).number, -1);
  EXPECT_EQ(parse_message("left 3", 4).number, 3);
  for (const char* line : {"", "left 4", "left -1", "left 99999999999", "left x", "end", "end 0", "end 126",
                           "end 1000", "fail", "fail x y", "asking", "ask 1", "finished now", "welcome"})
    EXPECT_EQ(parse_message(line, 4).kind, Kind::kNone) << line;
}

}  // namespace
}  // namespace mox::internal
