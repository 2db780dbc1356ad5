// The tests' own store while nobody asks it for anything: it is measured beside others (bench/file).
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "moxing/file/internal/descriptor.h"
#include "tests/support/object_store/s3_server.h"

namespace mox::file {
namespace {

constexpr int kConnections = 16;
constexpr auto kMeasured = std::chrono::milliseconds(500);

internal::Descriptor connection_to(int port) {
  internal::Descriptor sock(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(sock.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  return sock;
}

// The first bytes of the answer to one request.
std::string begin_of_answer(int sock) {
  const std::string request = "GET /bucket/a HTTP/1.1\r\nHost: here\r\n\r\n";
  EXPECT_EQ(::send(sock, request.data(), request.size(), MSG_NOSIGNAL), std::ssize(request));
  std::string answer(12, '\0');
  EXPECT_EQ(::recv(sock, answer.data(), answer.size(), MSG_WAITALL), std::ssize(answer));
  return answer;
}

int64_t times_asleep() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nvcsw;
}

TEST(IdleStore, ItsConnectionsSleepAndEndWithIt) {
  std::optional<testing_store::S3Server> server(std::in_place, testing_store::S3Server::Options{});
  std::vector<internal::Descriptor> connections;
  for (int i = 0; i < kConnections; ++i) {
    connections.push_back(connection_to(server->port()));
    EXPECT_EQ(begin_of_answer(connections.back().get()), "HTTP/1.1 403");  // it has no signature
  }
  std::this_thread::sleep_for(kMeasured);  // answers end
  const int64_t before = times_asleep();
  std::this_thread::sleep_for(kMeasured);
  EXPECT_LT(times_asleep() - before, kConnections);

  const auto begin = std::chrono::steady_clock::now();
  server.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

}  // namespace
}  // namespace mox::file
