// What ranks say to each other over a connection that others may sit in the middle of, and that hands it over
// in pieces of its own.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "runtime/job/internal/handshake.h"
#include "runtime/job/internal/rank_connections.h"
#include "runtime/job/internal/rank_watch.h"
#include "runtime/job/internal/signed_lines.h"
#include "runtime/job/job.h"

namespace mox::internal {
namespace {

using testing::StartsWith;

const std::vector<std::string> kTwoNames = {"rank 0 (host a)", "rank 1 (host b)"};
constexpr char kKey[] = "a key";

void send_bytes(int socket, std::string_view bytes) {
  ASSERT_EQ(::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
}

// Each in a packet of its own.
void send_slowly(int socket, const std::string& bytes) {
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  for (const char byte : bytes) {
    send_bytes(socket, {&byte, 1});
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

std::string next_line(int socket) {
  const timeval patience{20, 0};
  setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  std::string line;
  for (char c = 0; ::recv(socket, &c, 1, 0) == 1 && c != '\n';) line += c;
  return line;
}

sockaddr_in loopback_at(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

TEST(SignedLines, AreThoseOfTheOtherSideInTheirOrder) {
  SignedLines rank_0(kKey, true), rank(kKey, false);
  const std::string first = rank_0.sign("left 1"), empty = rank_0.sign(""), third = rank_0.sign("end 1");
  EXPECT_FALSE(rank.read(empty)) << "one was left out";
  EXPECT_EQ(rank.read(first), "left 1");
  EXPECT_FALSE(rank.read(first)) << "once more";
  EXPECT_EQ(rank.read(empty), "");
  for (const std::string& forged :
       {std::string(), std::string("end 1"), std::string(64, '0') + " end 1", third.substr(0, 64),
        third.substr(0, 64) + " end 2", third + " ", SignedLines("another key", true).sign("end 1")})
    EXPECT_FALSE(rank.read(forged)) << forged;
  EXPECT_EQ(rank.read(third), "end 1");
  // What a side has said itself does not come from the other one.
  EXPECT_FALSE(rank_0.read(SignedLines(kKey, true).sign("left")));
  EXPECT_EQ(rank_0.read(rank.sign("left")), "left");
}

// A watch of rank 1 whose rank 0 is the test.
class WatchedByHand {
 public:
  WatchedByHand() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    socket = ends[0];
    const RankConnection connection{.socket = ends[1], .key = kKey};
    watch = std::make_unique<RankWatch>(std::span(&connection, 1), 1, kTwoNames);
  }
  ~WatchedByHand() {
    watch.reset();
    ::close(socket);
  }
  int socket = -1;
  std::unique_ptr<RankWatch> watch;
  SignedLines rank_0{kKey, true};
};

TEST(RankWatch, HearsSeveralLinesInAPacketAndLinesThatAreCut) {
  WatchedByHand rank;
  const auto expect_answers = [&](int count) {
    for (int i = 0; i < count; ++i)
      EXPECT_THAT(rank.rank_0.read(next_line(rank.socket)).value_or("forged"), StartsWith("status "));
  };
  std::string two = rank.rank_0.sign("status?") + '\n';
  two += rank.rank_0.sign("status?") + '\n';
  const std::string third = rank.rank_0.sign("status?") + '\n';
  send_bytes(rank.socket, two + third.substr(0, 40));
  expect_answers(2);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  send_bytes(rank.socket, third.substr(40));
  expect_answers(1);
  send_slowly(rank.socket, rank.rank_0.sign("status?") + '\n');
  expect_answers(1);
}

// Somebody in the middle has let the handshake pass, and then says `line`, or what he makes of the
// rank's own answer.
void say_in_the_name_of_rank_0(const std::string& what) {
  alarm(60);  // the test fails then
  WatchedByHand rank;
  const std::string question = rank.rank_0.sign("status?");
  if (what == "again") write_line(rank.socket, question);
  if (what == "again" || what == "back") write_line(rank.socket, question);
  if (what == "back") write_line(rank.socket, next_line(rank.socket));
  if (what == "of another key") write_line(rank.socket, SignedLines("another key", true).sign("end 2"));
  if (what == "unsigned") write_line(rank.socket, "end 2");
  for (;;) pause();
}

TEST(RankWatchDeathTest, WhoIsInTheMiddleCanOnlyEndTheConnection) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  for (const char* what : {"unsigned", "of another key", "again", "back"})
    EXPECT_EXIT(say_in_the_name_of_rank_0(what), testing::ExitedWithCode(kJobFailed),
                "over its connection with rank 0 .host a. is not what rank 0 has said")
        << what;
}

TEST(RankConnections, ARankMayGreetByteByByte) {
  const RankListener listener = listen_for_ranks();
  const Hello hello{.rank = 1, .nonce = random_nonce()};
  const auto invitation = parse_invitation(listener.invitation);
  auto key = std::async(std::launch::async, [&] {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in to = loopback_at(invitation->port);
    EXPECT_EQ(::connect(socket, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
    send_slowly(socket, hello_line(hello) + '\n');
    const auto challenge = parse_challenge(next_line(socket), listener.secret, hello);
    EXPECT_TRUE(challenge);
    send_slowly(socket, response_line(listener.secret, hello, challenge->nonce) + '\n');
    std::string made = session_key(listener.secret, hello, challenge->nonce);
    EXPECT_EQ(next_line(socket), welcome_line(made));
    ::close(socket);
    return made;
  });
  const auto accepted = accept_ranks(listener, kTwoNames, std::chrono::seconds(60));
  EXPECT_EQ(accepted.at(0).key, key.get()) << "both sides have made the same";
  ::close(accepted.at(0).socket);
}

// Also what rank 0 says as soon as it has welcomed a rank is still there for the watch.
TEST(RankConnections, Rank0MayAnswerByteByByteAndGoOnInTheSamePacket) {
  const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in own = loopback_at(0);
  socklen_t length = sizeof own;
  ASSERT_EQ(::bind(server, reinterpret_cast<sockaddr*>(&own), sizeof own), 0);
  ASSERT_EQ(::listen(server, 10), 0);
  ASSERT_EQ(getsockname(server, reinterpret_cast<sockaddr*>(&own), &length), 0);
  const std::string secret = random_nonce(), nonce = random_nonce();
  auto key = std::async(std::launch::async, [&] {
    const int socket = ::accept(server, nullptr, nullptr);
    const auto hello = parse_hello(next_line(socket), 2);
    EXPECT_TRUE(hello);
    send_slowly(socket, challenge_line(secret, *hello, nonce) + '\n');
    EXPECT_TRUE(is_response(next_line(socket), secret, *hello, nonce));
    std::string made = session_key(secret, *hello, nonce);
    send_bytes(socket, welcome_line(made) + "\nwhat follows\n");
    ::close(socket);
    return made;
  });
  const RankConnection connection =
      connect_to_rank_0(fmt::format("{} {} 127.0.0.1", secret, ntohs(own.sin_port)), 1, true);
  EXPECT_EQ(connection.key, key.get());
  EXPECT_EQ(next_line(connection.socket), "what follows");
  ::close(connection.socket);
  ::close(server);
}

}  // namespace
}  // namespace mox::internal
