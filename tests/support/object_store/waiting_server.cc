#include "tests/support/object_store/waiting_server.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace mox::testing_store {
namespace {

constexpr size_t kBuffer = 64 << 10;

// A connection, with buffers: what belongs to an answer leaves in one piece if it is small. The library has
// set time-outs on the socket, so that nothing here waits for ever.
class Connection : public httplib::Stream {
 public:
  explicit Connection(socket_t sock) : sock_(sock) {}

  bool has_more() const { return begin_ < end_; }
  bool flush() {
    const bool sent = send_all(leaving_);
    leaving_.clear();
    return sent;
  }

  bool is_readable() const override { return true; }
  bool is_writable() const override { return !broken_; }

  ssize_t read(char* to, size_t size) override {
    if (!has_more()) {
      if (!flush()) return -1;  // who sends may be waiting for it
      if (size >= kBuffer) return receive(to, size);
      arrived_.resize(kBuffer);
      const ssize_t count = receive(arrived_.data(), arrived_.size());
      if (count <= 0) return count;
      begin_ = 0;
      end_ = count;
    }
    const size_t count = std::min(size, end_ - begin_);
    std::memcpy(to, arrived_.data() + begin_, count);
    begin_ += count;
    return count;
  }

  ssize_t write(const char* from, size_t size) override {
    if (leaving_.size() + size <= kBuffer) {
      leaving_.append(from, size);
      return size;
    }
    return flush() && send_all({from, size}) ? size : -1;
  }

  void get_remote_ip_and_port(std::string& ip, int& port) const override { get_local_ip_and_port(ip, port); }
  void get_local_ip_and_port(std::string& ip, int& port) const override {
    ip = "127.0.0.1";
    port = 0;  // nobody asks
  }
  socket_t socket() const override { return sock_; }

 private:
  ssize_t receive(char* to, size_t size) const {
    for (;;) {
      const ssize_t count = ::recv(sock_, to, size, 0);
      if (count >= 0 || errno != EINTR) return count;
    }
  }
  bool send_all(std::string_view bytes) {
    while (!bytes.empty() && !broken_) {
      const ssize_t count = ::send(sock_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count < 0 && errno == EINTR) continue;
      broken_ = count <= 0;
      if (!broken_) bytes.remove_prefix(count);
    }
    return !broken_;
  }

  const socket_t sock_;
  std::string arrived_, leaving_;
  size_t begin_ = 0, end_ = 0;  // of what has arrived and was not read yet
  bool broken_ = false;
};

}  // namespace

WaitingServer::WaitingServer() : stopping_(::eventfd(0, EFD_CLOEXEC)) {
  if (stopping_ < 0) throw std::runtime_error(fmt::format("eventfd: {}", std::strerror(errno)));
}
WaitingServer::~WaitingServer() { ::close(stopping_); }

void WaitingServer::stop_all() {
  ::eventfd_write(stopping_, 1);
  stop();
}

bool WaitingServer::has_request(socket_t sock) const {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(keep_alive_timeout_sec_);
  for (;;) {
    pollfd either[] = {{sock, POLLIN, 0}, {stopping_, POLLIN, 0}};
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now()).count();
    const int ready = ::poll(either, std::size(either), left > 0 ? static_cast<int>(left) : 0);
    if (ready < 0 && errno == EINTR) continue;
    return ready > 0 && either[1].revents == 0;
  }
}

template <typename Own>
bool WaitingServer::answer(Own& server, httplib::Stream& connection, bool& closed) {
  const std::function<void(httplib::Request&)> as_it_is;
  if constexpr (requires { server.process_request(connection, false, closed, as_it_is); })
    return server.process_request(connection, false, closed, as_it_is);
  else  // newer versions of the library
    return server.process_request(connection, "127.0.0.1", 0, "127.0.0.1", 0, false, closed, as_it_is);
}

bool WaitingServer::process_and_close_socket(socket_t sock) {
  Connection connection(sock);
  bool good = true, closed = false;
  while (good && !closed && (connection.has_more() || has_request(sock)))
    good = answer(*this, connection, closed) && connection.flush();
  ::shutdown(sock, SHUT_RDWR);
  ::close(sock);
  return good;
}

}  // namespace mox::testing_store
