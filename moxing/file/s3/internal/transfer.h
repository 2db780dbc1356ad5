// One request on its way through libcurl.
#pragma once

#include <curl/curl.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>

#include "moxing/file/s3/http.h"

namespace mox::file::s3::internal {

struct Transfer {
  explicit Transfer(const HttpRequest& request) : request(request) {}
  ~Transfer() { curl_slist_free_all(headers); }
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  void prepare(const HttpOptions& options);  // sets the handle up
  void conclude(CURLcode how);               // reads from the handle what its end was
  // Of its caller, who may destroy it when wait has returned, and of who serves it, whose last word end is.
  void wait();
  void end();
  // Whether nothing has moved for so long, or of what was asked for less than the lowest rate has come.
  bool stands_still(std::chrono::steady_clock::time_point now, double stall_s);
  bool worth_repeating() const;
  bool speaks_no_tls() const;  // plain HTTP came where TLS was begun
  bool has_bad_proxy() const;  // what libcurl says of it shows its password

  const HttpRequest& request;
  HttpResponse response;
  CURL* handle = nullptr;
  curl_slist* headers = nullptr;
  size_t sent = 0;  // bytes of the body
  bool too_long = false;
  bool has_too_many_fields = false;
  bool has_all_headers = false;
  bool is_too_slow = false;
  std::chrono::steady_clock::time_point last_progress;
  // Bytes of the answer, since the first of them came.
  std::chrono::steady_clock::time_point counted_since;
  int64_t counted = 0;
  std::atomic<bool> cancelled{false};
  CURLcode result = CURLE_OK;
  std::string failure;
  std::function<void()> when_ended;  // instead of a caller that waits; may destroy this
  char detail[CURL_ERROR_SIZE] = {};

 private:
  // Not a std::binary_semaphore: libstdc++'s gives its core away four times before it sleeps, which made
  // 40,000 system calls of 10,000 small objects.
  std::mutex mutex_;
  std::condition_variable ended_;
  bool has_ended_ = false;
};

}  // namespace mox::file::s3::internal
