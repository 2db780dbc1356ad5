#include "moxing/file/s3/http.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <atomic>
#include <cctype>
#include <chrono>
#include <cstring>
#include <deque>
#include <optional>
#include <thread>
#include <unordered_set>
#include <utility>

#include "moxing/file/s3/internal/transfer.h"
#include "moxing/file/s3/store_error.h"
#include "runtime/base/nearest_name.h"

namespace mox::file::s3 {

using internal::Transfer;

std::string HttpResponse::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

bool HttpResponse::take_header_line(std::string_view line) {
  if (line.starts_with("HTTP/")) headers.clear();
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return true;
  const std::string name = mox::internal::lower_case(line.substr(0, colon));
  if (headers.size() >= kMostHeaderFields && !headers.contains(name)) return false;
  const auto is_blank = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
  std::string_view value = line.substr(colon + 1);
  while (!value.empty() && is_blank(value.front())) value.remove_prefix(1);
  while (!value.empty() && is_blank(value.back())) value.remove_suffix(1);
  headers[name] = value;
  return true;
}

// Owns the multi handle, which only its thread touches. A transfer belongs to the caller that waits for it.
class HttpClient::Loop {
 public:
  explicit Loop(const HttpOptions& options) : options_(options) {
    static const CURLcode initialised = curl_global_init(CURL_GLOBAL_DEFAULT);
    MOX_ASSERT(initialised == CURLE_OK, "libcurl starts");
    multi_ = curl_multi_init();
    MOX_ASSERT(multi_, "libcurl starts");
    curl_multi_setopt(multi_, CURLMOPT_MAX_TOTAL_CONNECTIONS, static_cast<long>(options.connections));
    curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, static_cast<long>(options.connections));
    curl_multi_setopt(multi_, CURLMOPT_PIPELINING, CURLPIPE_NOTHING);
    thread_ = std::thread([this] { work(); });
  }

  ~Loop() {
    MOX_ASSERT(std::this_thread::get_id() != thread_.get_id(), "no callback is the last owner of its client");
    stopping_.store(true);
    curl_multi_wakeup(multi_);
    thread_.join();
    for (CURL* handle : idle_) curl_easy_cleanup(handle);
    curl_multi_cleanup(multi_);
  }

  void run(Transfer& transfer, const std::stop_token& stop) {
    add(transfer);
    const std::stop_callback when_stopped(stop, [&] { cancel(transfer); });
    transfer.wait();
  }

  // Owns itself until its end.
  void begin(HttpRequest request, std::function<void(HttpAttempt)> on_end, const std::stop_token& stop) {
    auto begun = std::make_unique<Begun>(std::move(request), std::move(on_end));
    begun->transfer.when_ended = [begun = begun.get()] {
      const std::unique_ptr<Begun> mine(begun);
      mine->when_stopped.reset();
      HttpAttempt attempt;
      try {
        attempt.response = answer_of(mine->transfer);
      } catch (...) {
        attempt.failure = std::current_exception();
      }
      attempt.request = std::move(mine->request);
      mine->on_end(std::move(attempt));
    };
    begun->when_stopped.emplace(stop, [this, &transfer = begun->transfer] { cancel(transfer); });
    add(begun.release()->transfer);
  }

  // What a transfer that has ended has brought.
  static HttpResponse answer_of(Transfer& transfer) {
    if (transfer.result == CURLE_OK) return std::move(transfer.response);
    if (transfer.result == CURLE_ABORTED_BY_CALLBACK) throw Cancelled("the transfer was cancelled");
    throw TransportError(transfer.failure, transfer.worth_repeating(), transfer.too_long);
  }

 private:
  struct Begun {
    Begun(HttpRequest request, std::function<void(HttpAttempt)> on_end)
        : request(std::move(request)), on_end(std::move(on_end)), transfer(this->request) {}
    HttpRequest request;
    const std::function<void(HttpAttempt)> on_end;
    Transfer transfer;
    std::optional<std::stop_callback<std::function<void()>>> when_stopped;
  };

  void add(Transfer& transfer) {
    {
      const std::lock_guard lock(mutex_);
      arrived_.push_back(&transfer);
    }
    if (sleeping_.exchange(false)) curl_multi_wakeup(multi_);
  }

  void cancel(Transfer& transfer) {
    transfer.cancelled.store(true);
    curl_multi_wakeup(multi_);
  }

  void work() {
    while (!stopping_.load()) {
      take_arrived();
      int running = 0;
      curl_multi_perform(multi_, &running);
      take_finished();
      end_what_stands_still();
      begin_waiting();
      sleep();
    }
    take_arrived();
    for (Transfer* transfer : waiting_) end(transfer, CURLE_ABORTED_BY_CALLBACK);
    while (!active_.empty()) finish(*active_.begin(), CURLE_ABORTED_BY_CALLBACK);
  }

  // Until something moves. A transfer that arrives wakes the thread if it sleeps, or is about to; one that
  // arrived before is seen here.
  void sleep() {
    sleeping_.store(true);
    const bool has_more = [&] {
      const std::lock_guard lock(mutex_);
      return !arrived_.empty();
    }();
    if (!has_more) curl_multi_poll(multi_, nullptr, 0, active_.empty() ? 10'000 : 200, nullptr);
    sleeping_.store(false);
  }

  void take_arrived() {
    {
      const std::lock_guard lock(mutex_);
      waiting_.insert(waiting_.end(), arrived_.begin(), arrived_.end());
      arrived_.clear();
    }
    begin_waiting();
  }

  // As many as there are connections: what waits for one does not stand still.
  void begin_waiting() {
    while (!waiting_.empty() && std::cmp_less(active_.size(), options_.connections)) {
      Transfer* const transfer = waiting_.front();
      waiting_.pop_front();
      if (transfer->cancelled.load()) {
        end(transfer, CURLE_ABORTED_BY_CALLBACK);
        continue;
      }
      if (idle_.empty()) idle_.push_back(curl_easy_init());
      transfer->handle = idle_.back();
      idle_.pop_back();
      transfer->prepare(options_);
      active_.insert(transfer);
      curl_multi_add_handle(multi_, transfer->handle);
    }
  }

  void take_finished() {
    int left = 0;
    while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      char* pointer = nullptr;
      const CURLcode result = message->data.result;
      curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &pointer);
      finish(reinterpret_cast<Transfer*>(pointer), result);
    }
  }

  void end_what_stands_still() {
    const auto now = std::chrono::steady_clock::now();
    std::vector<Transfer*> ended;
    for (Transfer* transfer : active_)
      if (transfer->cancelled.load() || transfer->stands_still(now, options_.stall_s))
        ended.push_back(transfer);
    for (Transfer* transfer : ended)
      finish(transfer, transfer->cancelled.load() ? CURLE_ABORTED_BY_CALLBACK : CURLE_OPERATION_TIMEDOUT);
    std::erase_if(waiting_, [&](Transfer* transfer) {
      const bool cancelled = transfer->cancelled.load();
      if (cancelled) end(transfer, CURLE_ABORTED_BY_CALLBACK);
      return cancelled;
    });
  }

  // After this the transfer is its caller's again.
  void finish(Transfer* transfer, CURLcode result) {
    curl_multi_remove_handle(multi_, transfer->handle);
    active_.erase(transfer);
    transfer->conclude(result);
    curl_easy_reset(transfer->handle);
    idle_.push_back(transfer->handle);
    transfer->handle = nullptr;
    transfer->end();
  }
  // The same of one that was never begun.
  static void end(Transfer* transfer, CURLcode result) {
    transfer->result = result;
    transfer->end();
  }

  const HttpOptions options_;
  CURLM* multi_ = nullptr;
  std::vector<CURL*> idle_;
  std::deque<Transfer*> waiting_;  // for a connection
  std::unordered_set<Transfer*> active_;
  std::mutex mutex_;  // of arrived_
  std::deque<Transfer*> arrived_;
  std::atomic<bool> stopping_{false}, sleeping_{false};
  std::thread thread_;
};

HttpClient::HttpClient(const HttpOptions& options) : loop_(std::make_unique<Loop>(options)) {}
HttpClient::~HttpClient() = default;

HttpResponse HttpClient::perform(const HttpRequest& request, std::stop_token stop) {
  if (stop.stop_requested()) throw Cancelled("the transfer was cancelled");
  Transfer transfer(request);
  loop_->run(transfer, stop);
  return Loop::answer_of(transfer);
}

void HttpClient::begin(HttpRequest request, std::function<void(HttpAttempt)> on_end, std::stop_token stop) {
  loop_->begin(std::move(request), std::move(on_end), stop);
}

}  // namespace mox::file::s3
