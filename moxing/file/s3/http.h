// HTTP requests of any number of threads through one bounded pool of connections, which one thread of its own
// serves (libcurl's multi interface). TLS certificates are verified; proxies come from the environment
// (https_proxy, no_proxy). Redirections are not followed, and nothing is repeated here.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "moxing/file/s3/signature.h"
#include "runtime/base/error.h"

namespace mox::file::s3 {

struct HttpOptions {
  int connections = 64;
  bool verify_tls = true;
  std::string ca_file = {};
  double connect_timeout_s = 10;
  double stall_s = 30;
  bool use_proxy = true;
};

struct HttpRequest {
  std::string method = "GET";
  std::string url = {};
  NamesAndValues headers = {};
  std::string_view body = {};     // must live until `perform` returns
  int64_t most_bytes = 64 << 20;  // a longer answer is an error
};

inline constexpr size_t kMostHeaderFields = 1024;

struct HttpResponse {
  int status = 0;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
  std::string header(const std::string& name) const;  // "" if it is not there
  // One line of what comes before a body, as it has come. A status begins another answer: those before it
  // were interim ones. What is no field is passed over. False where it is one more name than
  // kMostHeaderFields, and is not taken: what an answer says there would have been read by nobody.
  [[nodiscard]] bool take_header_line(std::string_view line);
};

// No whole answer has come: the connection was refused, reset or ended too early, or nothing moved
// for too long.
class TransportError : public IoError {
 public:
  TransportError(const std::string& text, bool worth_repeating, bool too_long = false)
      : IoError(text), worth_repeating_(worth_repeating), too_long_(too_long) {}
  bool worth_repeating() const { return worth_repeating_; }  // not for a certificate that is not trusted
  bool too_long() const { return too_long_; }                // more than most_bytes came

 private:
  bool worth_repeating_, too_long_;
};

// A request that was begun, at its end: one of the two is there, and `failure` is what `perform`
// would have thrown.
struct HttpAttempt {
  HttpRequest request;
  HttpResponse response;
  std::exception_ptr failure;
};

class HttpClient {
 public:
  explicit HttpClient(const HttpOptions& options);
  ~HttpClient();  // ends what is under way
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Blocks until the whole answer is there. Throws TransportError, or Cancelled (store_error.h) when `stop`
  // asks for it. Any thread.
  HttpResponse perform(const HttpRequest& request, std::stop_token stop = {});

  // Returns at once. `on_end` is called on the client's own thread, for which everything else waits
  // meanwhile; it must not throw.
  void begin(HttpRequest request, std::function<void(HttpAttempt)> on_end, std::stop_token stop = {});

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

}  // namespace mox::file::s3
