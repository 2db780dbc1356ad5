// When a request is repeated, and after how long.
#pragma once

#include <chrono>
#include <optional>
#include <stop_token>
#include <string>

#include "moxing/file/s3/store_options.h"

namespace mox::file::s3 {

// For one operation. Waits a random part of a time that doubles ("full jitter"), so that many clients do not
// come back together.
class Retry {
 public:
  explicit Retry(const StoreOptions& options);

  int attempt() const { return attempt_; }  // begins with 1
  int most_attempts() const { return options_.attempts; }

  // After a failure: waits, and says true if there is another attempt. `retry_after`: what the server asks
  // for. Throws Cancelled.
  bool wait(std::optional<double> retry_after, const std::stop_token& stop);

 private:
  const StoreOptions& options_;
  const std::chrono::steady_clock::time_point begin_;
  int attempt_ = 1;
};

// Of a header Retry-After: seconds, or a date. Nothing for anything else.
std::optional<double> parse_retry_after(const std::string& text);

// Whether an answer of this status, or of this code of the store's, is worth another attempt: 429, 500, 502,
// 503, 504, SlowDown, and a time-out.
bool worth_repeating(int status, const std::string& code);

}  // namespace mox::file::s3
