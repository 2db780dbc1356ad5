#include "tests/support/object_store/fault_proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

namespace mox::testing_store {
namespace {

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  return address;
}

bool send_all(int socket, std::string_view bytes, std::atomic<int64_t>* counted = nullptr) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    if (counted) *counted += sent;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

void reset(int socket) {
  const linger at_once{1, 0};
  ::setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

// The value of a header of this name (in lower case) in a head; "" if it is not there.
std::string header_in(const std::string& head, std::string_view name) {
  for (size_t line = head.find("\r\n"); line != std::string::npos && line + 2 < head.size();
       line = head.find("\r\n", line + 2)) {
    const size_t begin = line + 2, colon = head.find(':', begin), end = head.find("\r\n", begin);
    if (colon == std::string::npos || end == std::string::npos || colon > end) continue;
    std::string found = head.substr(begin, colon - begin);
    std::transform(found.begin(), found.end(), found.begin(),
                   [](unsigned char c) { return std::tolower(c); });
    if (found != name) continue;
    size_t value = colon + 1;
    while (value < end && head[value] == ' ') ++value;
    return head.substr(value, end - value);
  }
  return "";
}

// Reads from a socket, and keeps what came with it.
class Reader {
 public:
  explicit Reader(int socket, std::atomic<int64_t>* counted = nullptr) : socket_(socket), counted_(counted) {}
  bool head(std::string& out) {
    size_t end;
    while ((end = kept_.find("\r\n\r\n")) == std::string::npos)
      if (!more()) return false;
    out = kept_.substr(0, end + 4);
    kept_.erase(0, end + 4);
    return true;
  }
  bool body(size_t length, std::string& out) {
    while (kept_.size() < length)
      if (!more()) return false;
    out = kept_.substr(0, length);
    kept_.erase(0, length);
    return true;
  }

 private:
  bool more() {
    char buffer[256 << 10];
    const ssize_t got = ::recv(socket_, buffer, sizeof buffer, 0);
    if (got <= 0) return false;
    if (counted_) *counted_ += got;
    kept_.append(buffer, static_cast<size_t>(got));
    return true;
  }
  int socket_;
  std::atomic<int64_t>* counted_;
  std::string kept_;
};

size_t length_in(const std::string& head) {
  return std::strtoull(header_in(head, "content-length").c_str(), nullptr, 10);
}

std::string status_answer(int status, const std::string& code, bool is_head) {
  const std::string body =
      is_head ? "" : "<Error><Code>" + code + "</Code><Message>as ordered</Message></Error>";
  return "HTTP/1.1 " + std::to_string(status) + " Ordered\r\nContent-Length: " + std::to_string(body.size()) +
         (status == 429 ? "\r\nRetry-After: 0" : "") + "\r\nContent-Type: application/xml\r\n\r\n" + body;
}

// The answer that stands for the server's, which is not asked; "" where it is.
std::string refusal_of(Fault fault, bool is_head) {
  switch (fault) {
    case Fault::kStatus500:
      return status_answer(500, "InternalError", is_head);
    case Fault::kStatus502:
      return status_answer(502, "BadGateway", is_head);
    case Fault::kStatus503:
      return status_answer(503, "SlowDown", is_head);
    case Fault::kStatus504:
      return status_answer(504, "GatewayTimeout", is_head);
    case Fault::kStatus429:
      return status_answer(429, "TooManyRequests", is_head);
    default:
      return "";
  }
}

// Another digit for the first of an ETag, in a header or a document.
void change_etag(std::string& answer) {
  for (const std::string_view mark : {"ETag: \"", "<ETag>\""}) {
    const size_t at = answer.find(mark);
    if (at == std::string::npos) continue;
    char& digit = answer[at + mark.size()];
    digit = digit == '0' ? '1' : '0';
    return;
  }
}

}  // namespace

const std::vector<Fault>& all_faults() {
  static const std::vector<Fault> faults = [] {
    std::vector<Fault> list;
    for (int i = 1; i <= static_cast<int>(Fault::kTwice); ++i) list.push_back(static_cast<Fault>(i));
    return list;
  }();
  return faults;
}

std::string_view name_of(Fault fault) {
  constexpr std::string_view kNames[] = {
      "none",           "status 500",   "status 502",       "status 503",  "status 504",
      "status 429",     "error in 200", "reset in request", "lost answer", "reset in answer",
      "truncated",      "wrong ETag",   "damaged body",     "slow",        "standstill",
      "delivered twice"};
  return kNames[static_cast<int>(fault)];
}

std::string operation_of(std::string_view method, std::string_view target, bool has_copy_source) {
  const size_t mark = target.find('?');
  const std::string_view path = target.substr(0, mark);
  const std::string query =
      "&" + std::string(mark == std::string_view::npos ? "" : target.substr(mark + 1)) + "&";
  const auto has = [&](std::string_view name) {
    return query.find("&" + std::string(name) + "=") != std::string::npos ||
           query.find("&" + std::string(name) + "&") != std::string::npos;
  };
  const bool bucket = std::count(path.begin(), path.end(), '/') < 2 || path.find('/', 1) + 1 == path.size();
  if (bucket)
    return has("uploads")     ? "ListMultipartUploads"
           : method == "POST" ? "DeleteObjects"
           : has("list-type") ? "ListObjectsV2"
                              : "ListObjects";
  if (has("uploads")) return "CreateMultipartUpload";
  if (has("uploadId")) {
    if (method == "GET") return "ListParts";
    if (method == "POST") return "CompleteMultipartUpload";
    if (method == "DELETE") return "AbortMultipartUpload";
    return has_copy_source ? "UploadPartCopy" : "UploadPart";
  }
  if (method == "PUT") return has_copy_source ? "CopyObject" : "PutObject";
  if (method == "POST") return "AppendObject";
  if (method == "HEAD") return "HeadObject";
  return method == "DELETE" ? "DeleteObject" : "GetObject";
}

struct FaultProxy::Connection {
  Connection(int client, std::atomic<int64_t>* counted) : client(client), from_client(client, counted) {}
  ~Connection() {
    if (server >= 0) ::close(server);
  }
  bool ask(int port, const std::string& request, bool is_head, std::string& answer) {
    for (int attempt = 0; attempt < 2; ++attempt) {  // the server may have closed a connection that was kept
      if (server < 0) {
        server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        const sockaddr_in address = loopback(port);
        if (::connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return false;
        const int on = 1;
        ::setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        from_server = Reader(server);
      }
      std::string head, body;
      if (send_all(server, request) && from_server.head(head)) {
        const int status = std::atoi(head.c_str() + 9);
        const bool has_body = !is_head && status != 204 && status != 304;
        if (!has_body || from_server.body(length_in(head), body)) {
          answer = head + body;
          return true;
        }
      }
      ::close(server);
      server = -1;
    }
    return false;
  }
  const int client;
  Reader from_client;
  int server = -1;
  Reader from_server{-1};
};

FaultProxy::FaultProxy(int server_port) : server_port_(server_port) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(listener_, 256) != 0 ||
      ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0)
    throw std::runtime_error("the fault proxy cannot listen");
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { accept_all(); });
}

FaultProxy::~FaultProxy() {
  stopping_.store(true);
  ::shutdown(listener_, SHUT_RDWR);
  thread_.join();
  ::close(listener_);
  std::unique_lock lock(mutex_);
  for (const int client : clients_) ::shutdown(client, SHUT_RDWR);
  gone_.wait(lock, [this] { return clients_.empty(); });
}

void FaultProxy::set_plan(Plan plan) {
  const std::lock_guard lock(mutex_);
  plan_ = std::move(plan);
  seen_.clear();
}

void FaultProxy::wait_until_idle() {
  std::unique_lock lock(mutex_);
  gone_.wait(lock, [this] { return busy_ == 0; });
}

void FaultProxy::wait_until_clients_are_gone() {
  std::unique_lock lock(mutex_);
  gone_.wait(lock, [this] { return clients_.empty(); });
}

bool FaultProxy::give(int client, std::string_view bytes) { return send_all(client, bytes, &to_clients_); }

void FaultProxy::set_away(bool away) {
  away_.store(away);
  if (!away) return;
  const std::lock_guard lock(mutex_);
  for (const int client : clients_) {
    reset(client);
    ::shutdown(client, SHUT_RDWR);
  }
}

void FaultProxy::accept_all() {
  while (!stopping_.load()) {
    const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) {
      if (stopping_.load()) return;
      continue;
    }
    if (away_.load()) {
      reset(client);
      ::close(client);
      continue;
    }
    const int on = 1;
    ::setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    {
      const std::lock_guard lock(mutex_);
      clients_.insert(client);
    }
    std::thread([this, client] { serve(client); }).detach();
  }
}

void FaultProxy::serve(int client) {
  {
    Connection connection(client, &from_clients_);
    std::string head;
    for (bool goes_on = true; goes_on && !stopping_.load() && connection.from_client.head(head);) {
      {
        const std::lock_guard lock(mutex_);
        ++busy_;
      }
      goes_on = serve_one(connection, head);
      const std::lock_guard lock(mutex_);
      --busy_;
      gone_.notify_all();
    }
  }
  const std::lock_guard lock(mutex_);
  ::close(client);
  clients_.erase(client);
  gone_.notify_all();
}

// False: the connection is over.
bool FaultProxy::serve_one(Connection& connection, const std::string& head) {
  std::string body;
  const std::string method = head.substr(0, head.find(' '));
  const std::string target =
      head.substr(method.size() + 1, head.find(' ', method.size() + 1) - method.size() - 1);
  const bool is_head = method == "HEAD";
  const std::string operation = operation_of(method, target, !header_in(head, "x-amz-copy-source").empty());
  Happening happening;
  {
    const std::lock_guard lock(mutex_);
    if (plan_) happening = plan_(operation, seen_[operation]++);
  }
  if (happening.fault != Fault::kNone) ++faults_;
  const size_t length = length_in(head);
  if (happening.fault == Fault::kResetInRequest) {
    connection.from_client.body(happening.part_of(length), body);
    reset(connection.client);
    return false;
  }
  if (!connection.from_client.body(length, body)) return false;
  if (const std::string refusal = refusal_of(happening.fault, is_head); !refusal.empty())
    return give(connection.client, refusal);
  std::string answer;
  if (!connection.ask(server_port_, head + body, is_head, answer)) return false;
  if (happening.fault == Fault::kTwice && !connection.ask(server_port_, head + body, is_head, answer))
    return false;
  // Of what has a document for an answer; where the body is the object, nobody could tell.
  if (happening.fault == Fault::kErrorIn200 && operation != "GetObject" && !is_head &&
      answer.starts_with("HTTP/1.1 20"))
    answer = status_answer(200, "InternalError", false);
  return pass_on(connection.client, answer, happening);
}

// False: the connection is over.
bool FaultProxy::pass_on(int client, std::string answer, const Happening& happening) {
  const size_t head = answer.find("\r\n\r\n") + 4;
  switch (happening.fault) {
    case Fault::kLostAnswer:
      reset(client);
      return false;
    case Fault::kResetInAnswer:
      give(client, std::string_view(answer).substr(0, happening.part_of(answer.size())));
      reset(client);
      return false;
    case Fault::kTruncated:
      give(client, std::string_view(answer).substr(0, happening.part_of(answer.size())));
      return false;
    case Fault::kWrongEtag:
      change_etag(answer);
      break;
    case Fault::kDamagedBody:
      if (answer.size() > head)
        answer[head + std::min(happening.part_of(answer.size() - head), answer.size() - head - 1)] ^= 1;
      break;
    case Fault::kSlow: {
      const size_t piece = answer.size() / 16 + 1;
      for (size_t at = 0; at < answer.size(); at += piece) {
        if (!give(client, std::string_view(answer).substr(at, piece))) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(3));
      }
      return true;
    }
    case Fault::kStandstill: {
      give(client, std::string_view(answer).substr(0, happening.part_of(answer.size() - 1)));
      pollfd gone{client, POLLIN, 0};
      while (!stopping_.load() && ::poll(&gone, 1, 50) == 0) {
      }
      return false;
    }
    default:
      break;
  }
  return give(client, answer);
}

}  // namespace mox::testing_store
