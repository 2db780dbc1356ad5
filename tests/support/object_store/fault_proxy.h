// What can go wrong between a client and an object store, on order: a relay on loopback that reads whole
// requests and answers, and does to them what the test has planned. It knows S3's calls by their look and
// works in front of any server.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace mox::testing_store {

enum class Fault {
  kNone,
  kStatus500,  // instead of the server's answer; the request does not reach it
  kStatus502,
  kStatus503,  // code SlowDown
  kStatus504,
  kStatus429,       // with Retry-After: 0
  kErrorIn200,      // status 200, and an <Error> as its body
  kResetInRequest,  // the connection is reset when a part of the request has come
  kLostAnswer,      // the server does what is asked for, then the connection is reset
  kResetInAnswer,   // in the midst of its headers or its body
  kTruncated,       // the same, but the connection is closed as if all were well
  kWrongEtag,       // another digit in the ETag of the answer's headers or document
  kDamagedBody,     // one bit of the answer's body
  kSlow,            // the answer trickles
  kStandstill,      // the answer begins and nothing follows
  kTwice,           // the request is delivered twice; the second answer is given
};
const std::vector<Fault>& all_faults();  // without kNone
std::string_view name_of(Fault fault);

struct Happening {
  Fault fault = Fault::kNone;
  double where = 0.5;  // of its bytes, 0 to 1

  size_t part_of(size_t bytes) const { return static_cast<size_t>(where * static_cast<double>(bytes)); }
};

// "PutObject", "GetObject", "UploadPart" ...
std::string operation_of(std::string_view method, std::string_view target, bool has_copy_source);

class FaultProxy {
 public:
  explicit FaultProxy(int server_port);
  ~FaultProxy();
  FaultProxy(const FaultProxy&) = delete;
  FaultProxy& operator=(const FaultProxy&) = delete;

  std::string endpoint() const { return "http://127.0.0.1:" + std::to_string(port_); }

  // Called for each request with its operation and how many of it came before, by one thread at a time.
  using Plan = std::function<Happening(const std::string& operation, int64_t number)>;
  void set_plan(Plan plan);
  int64_t faults_made() const { return faults_.load(); }

  // What has crossed this proxy, whole or not: heads and bodies of requests, and of answers.
  int64_t bytes_from_clients() const { return from_clients_.load(); }
  int64_t bytes_to_clients() const { return to_clients_.load(); }
  // Waits until what was asked for is done, also what its client has given up: it would come late.
  void wait_until_idle();
  void wait_until_clients_are_gone();

  // While the store is away every connection is refused, and those that exist are reset.
  void set_away(bool away);

 private:
  struct Connection;
  void accept_all();
  void serve(int client);
  bool serve_one(Connection& connection, const std::string& head);
  bool pass_on(int client, std::string answer, const Happening& happening);
  bool give(int client, std::string_view bytes);

  const int server_port_;
  int port_ = 0, listener_ = -1;
  std::atomic<bool> stopping_{false}, away_{false};
  std::atomic<int64_t> faults_{0}, from_clients_{0}, to_clients_{0};
  std::mutex mutex_;
  std::condition_variable gone_;
  Plan plan_;
  std::map<std::string, int64_t> seen_;
  int busy_ = 0;           // requests that are served
  std::set<int> clients_;  // sockets of connections that are served
  std::thread thread_;
};

}  // namespace mox::testing_store
