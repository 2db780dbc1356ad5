#include "moxing/file/s3/retry.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <random>

#include "moxing/file/s3/documents.h"
#include "moxing/file/s3/store_error.h"
#include "runtime/base/seconds.h"

namespace mox::file::s3 {
namespace {

// A long upload may fail late: its time alone does not end the attempts.
constexpr int kAttemptsBeforeDeadline = 3;

// Of a thread, and seeded when it first waits: it costs a request that succeeds nothing.
double random_up_to(double most) {
  thread_local std::minstd_rand random(std::random_device{}());
  return std::uniform_real_distribution<double>(0, most)(random);
}

void sleep_for(double seconds, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  stopped.wait_for(lock, stop, std::chrono::duration<double>(seconds), [] { return false; });
  if (stop.stop_requested()) throw Cancelled("the transfer was cancelled");
}

}  // namespace

Retry::Retry(const StoreOptions& options) : options_(options), begin_(std::chrono::steady_clock::now()) {}

bool Retry::wait(std::optional<double> retry_after, const std::stop_token& stop) {
  if (attempt_ >= options_.attempts) return false;
  const double left = options_.deadline_s - seconds_since(begin_);
  const double most =
      std::min(options_.longest_delay_s, options_.first_delay_s * std::ldexp(1.0, attempt_ - 1));
  double delay = random_up_to(most);
  delay = std::max(delay, retry_after.value_or(0));
  if (delay > left && (attempt_ >= kAttemptsBeforeDeadline || retry_after)) return false;
  sleep_for(delay, stop);
  ++attempt_;
  return true;
}

std::optional<double> parse_retry_after(const std::string& text) {
  double seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error == std::errc() && end == text.data() + text.size() && seconds >= 0) return seconds;
  const auto time = parse_time(text);
  if (time == std::chrono::system_clock::time_point{}) return std::nullopt;
  return std::max(0.0, std::chrono::duration<double>(time - std::chrono::system_clock::now()).count());
}

bool worth_repeating(int status, const std::string& code) {
  if (code == "SlowDown" || code == "RequestTimeout" || code == "InternalError" ||
      code == "ServiceUnavailable")
    return true;
  return status == 429 || status == 500 || status == 502 || status == 503 || status == 504;
}

}  // namespace mox::file::s3
