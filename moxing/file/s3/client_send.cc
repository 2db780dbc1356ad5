// How a call becomes requests: address, signature, attempts, and what can be mended between them.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <exception>
#include <utility>

#include "moxing/file/s3/digest.h"
#include "moxing/file/s3/internal/call.h"
#include "moxing/file/s3/retry.h"
#include "moxing/file/s3/store_error.h"
#include "moxing/file/s3/uri.h"
#include "runtime/base/log.h"

namespace mox::file::s3 {
namespace {

constexpr auto kBeforeExpiry = std::chrono::minutes(5);
constexpr auto kBetweenRenewals = std::chrono::seconds(10);  // that fail, while the keys are still good
constexpr int kMostMends = 3;
// SHA-256 of no bytes, which is what nearly all requests hold.
constexpr const char* kSha256OfNothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

// What a name in a host may be: then "bucket.host" is one, and a certificate for "*.host" is good for it.
bool fits_host(const std::string& bucket, bool https) {
  for (const char c : bucket)
    if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || (c == '.' && !https))) return false;
  return bucket.size() >= 3 && bucket.size() <= 63 && bucket.front() != '-' && bucket.back() != '-';
}

bool is_known_cloud(const std::string& host) {
  return host.find(".amazonaws.com") != std::string::npos ||
         host.find(".myhuaweicloud.com") != std::string::npos;
}

bool is_success(const HttpResponse& response) { return response.status >= 200 && response.status < 300; }

void replace_all(std::string& text, const std::string& secret) {
  if (secret.size() < 4) return;
  for (size_t at = text.find(secret); at != std::string::npos; at = text.find(secret, at))
    text.replace(at, secret.size(), "***");
}

void require_header_text(const std::string& value) {
  for (const char c : value)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      throw ConfigError(
          "a credential of the object store has a character in it that none has (a line break?)");
}

}  // namespace

std::string Client::region_of(const std::string& bucket) const {
  const std::lock_guard lock(mutex_);
  const auto found = regions_.find(bucket);
  if (found != regions_.end()) return found->second;
  return options_.region.empty() ? "us-east-1" : options_.region;
}

Client::Place Client::place_of(const std::string& bucket) const {
  Place place;
  const std::string endpoint = options_.endpoint.empty()
                                   ? fmt::format("https://s3.{}.amazonaws.com", region_of(bucket))
                                   : options_.endpoint;
  const size_t colon = endpoint.find("://");
  place.scheme = endpoint.substr(0, colon);
  place.host = endpoint.substr(colon + 3);
  // As libcurl writes the header Host.
  const std::string default_port = place.scheme == "https" ? ":443" : ":80";
  if (place.host.ends_with(default_port)) place.host.resize(place.host.size() - default_port.size());
  using Addressing = StoreOptions::Addressing;
  const bool in_host = options_.addressing == Addressing::kVirtual ||
                       (options_.addressing == Addressing::kAuto && is_known_cloud(place.host) &&
                        fits_host(bucket, place.scheme == "https"));
  if (in_host)
    place.host = bucket + "." + place.host;
  else
    place.path = "/" + bucket;
  return place;
}

Credentials Client::credentials() {
  const std::lock_guard lock(mutex_);
  const auto now = std::chrono::system_clock::now();
  const bool are_good = credentials_known_ && now < credentials_expire_;
  if (are_good && (now + kBeforeExpiry < credentials_expire_ || now < next_renewal_)) return credentials_;
  if (auto found = local_credentials(options_)) {
    credentials_ = *std::move(found);
  } else if (options_.instance_metadata) {
    TemporaryCredentials temporary;
    try {
      temporary = ask_instance_metadata();
    } catch (const Error&) {
      if (!are_good) throw;
      next_renewal_ = now + kBetweenRenewals;
      return credentials_;
    }
    credentials_ = std::move(temporary.credentials);
    credentials_expire_ = parse_time(temporary.expiration);
  } else {
    throw ConfigError(
        "there are no credentials for the object store: set ACCESS_KEY_ID and SECRET_ACCESS_KEY (or "
        "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY), or write a profile into ~/.aws/credentials; on a "
        "cloud machine, --file.instance_metadata=true asks its service");
  }
  for (const std::string& value :
       {credentials_.access_key, credentials_.secret_key, credentials_.session_token})
    require_header_text(value);
  credentials_known_ = true;
  return credentials_;
}

std::string Client::without_secrets(std::string text) const {
  const std::lock_guard lock(mutex_);
  for (const std::string& secret :
       {credentials_.secret_key, credentials_.session_token, credentials_.access_key})
    replace_all(text, secret);
  return text;
}

HttpRequest Client::signed_request(const Call& call) {
  // Else Amazon would hear of the bucket and of who asks.
  if (call.object.scheme == "obs" && options_.endpoint.empty())
    throw ConfigError(fmt::format(
        "'{}' is in an object store of which nothing says where it is: set S3_ENDPOINT or --file.endpoint, to "
        "https://obs.REGION.myhuaweicloud.com for Huawei's (s3:// names are Amazon's without one)",
        call.object.shown()));
  const Place place = place_of(call.object.bucket);
  RequestToSign request{.method = call.method,
                        .path = place.path + "/" + percent_encode(call.object.key, true),
                        .query = call.query,
                        .headers = call.headers,
                        .payload_sha256 = {}};
  // Under TLS nobody can change the body on its way; without, the signature covers it.
  request.payload_sha256 = call.body.empty()         ? kSha256OfNothing
                           : place.scheme == "https" ? "UNSIGNED-PAYLOAD"
                                                     : hex(sha256(call.body));
  request.headers.emplace_back("host", place.host);
  sign(request, credentials(), region_of(call.object.bucket), std::time(nullptr) + clock_skew_s_.load(),
       signing_key_);
  const std::string query = encoded_query(request.query);
  return {.method = call.method,
          .url = fmt::format("{}://{}{}{}{}", place.scheme, place.host, request.path,
                             query.empty() ? "" : "?", query),
          .headers = std::move(request.headers),
          .body = call.body,
          .most_bytes = call.most_bytes};
}

void Client::begin(const Call& call, std::function<void(HttpAttempt)> on_end, std::stop_token stop) {
  HttpRequest request;
  try {
    request = signed_request(call);
  } catch (const TransportError&) {
    return on_end({.request = {}, .response = {}, .failure = std::current_exception()});
  }
  http_.begin(std::move(request), std::move(on_end), std::move(stop));
}

bool Client::renews_credentials(const HttpRequest& request) {
  const auto sent = std::find_if(request.headers.begin(), request.headers.end(),
                                 [](const auto& header) { return header.first == "x-amz-security-token"; });
  const std::string expired = sent == request.headers.end() ? "" : sent->second;
  const std::lock_guard lock(mutex_);
  if (credentials_.session_token != expired) return true;  // another thread was here
  try {
    // Whoever renews them writes them into the file of the profile.
    const auto found = local_credentials(options_);
    const bool are_others = found ? found->session_token != expired : options_.instance_metadata;
    if (are_others) credentials_known_ = false;
    return are_others;
  } catch (const Error&) {
    return false;  // a file that is half written: what the store says is the trouble
  }
}

bool Client::mend(const Call& call, const HttpRequest& request, const HttpResponse& response,
                  const StoreRefusal& refusal) {
  if (refusal.code == "RequestTimeTooSkewed" ||
      (call.method == "HEAD" && response.status == 403 && refusal.code.empty())) {
    const auto theirs = parse_time(response.header("date"));
    if (theirs == std::chrono::system_clock::time_point{}) return false;
    const int64_t skew = std::chrono::system_clock::to_time_t(theirs) - std::time(nullptr);
    const int64_t change = skew - clock_skew_s_.exchange(skew);
    return change > 60 || change < -60;
  }
  std::string region = response.header("x-amz-bucket-region");
  if (region.empty()) region = refusal.region;
  if (!region.empty() && region.size() < 64 && region != region_of(call.object.bucket) &&
      (response.status == 301 || response.status == 307 || response.status == 400 ||
       response.status == 403)) {
    for (const char c : region)
      if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'))
        return false;  // it becomes a part of the host
    const std::lock_guard lock(mutex_);
    regions_[call.object.bucket] = region;
    return true;
  }
  return refusal.code == "ExpiredToken" && renews_credentials(request);
}

void Client::refuse(const Call& call, const HttpResponse& response, const StoreRefusal& refusal,
                    int attempt) const {
  std::string id = refusal.request_id;
  if (id.empty()) id = response.header("x-amz-request-id");
  const std::string text = without_secrets(fmt::format(
      "{} of '{}' was refused: status {}{}{}{} (request id {}, attempt {} of {})", call.operation,
      call.object.shown(), response.status, refusal.code.empty() ? "" : " " + shown_begin(refusal.code),
      refusal.message.empty() ? "" : ": ", shown_begin(refusal.message),
      id.empty() ? "unknown" : shown_begin(id), attempt, options_.attempts));
  if (response.status == 404 && refusal.code != "NoSuchUpload") throw NotFound(text);
  throw StoreError(text, response.status, refusal.code);
}

std::optional<StoreRefusal> Client::explanation_of(const Call& refused, std::stop_token stop) {
  Call call = refused;
  call.method = "GET";
  call.most_bytes = 64 << 10;  // if it is let through after all, nobody waits for the object
  try {
    const HttpResponse response = http_.perform(signed_request(call), stop);
    if (is_success(response)) return std::nullopt;
    return parse_refusal(response.body);
  } catch (const TransportError& error) {
    if (error.too_long()) return std::nullopt;
    return StoreRefusal{};  // the refusal stands without it
  }
}

HttpResponse Client::send(const Call& call, std::stop_token stop, std::optional<HttpAttempt> begun) {
  Retry retry(options_);
  for (int mends = 0;;) {
    std::optional<double> retry_after;
    try {
      std::optional<HttpAttempt> first = std::exchange(begun, std::nullopt);
      if (first && first->failure) std::rethrow_exception(first->failure);
      const HttpRequest request = first ? std::move(first->request) : signed_request(call);
      HttpResponse response = first ? std::move(first->response) : http_.perform(request, stop);
      const bool success = is_success(response);
      StoreRefusal refusal;
      if (!success || !call.body_is_object) refusal = parse_refusal(response.body);
      if (success && refusal.code.empty()) return response;
      const bool may_mend = mends < kMostMends;
      bool is_mended = may_mend && mend(call, request, response, refusal);
      // A lone <Error> in a success is the store's own trouble, whatever its code.
      if (!is_mended && !success && call.method == "HEAD" && response.status != 404 &&
          response.status < 500 && !worth_repeating(response.status, "")) {
        const auto explained = explanation_of(call, stop);
        refusal = explained.value_or(StoreRefusal{});
        // What is let through now was mended by another thread; or the store answers a GET alone.
        is_mended = may_mend && (explained ? mend(call, request, response, refusal) : mends == 0);
      }
      if (is_mended) {
        ++mends;
        continue;
      }
      if (!success && !worth_repeating(response.status, refusal.code))
        refuse(call, response, refusal, retry.attempt());
      retry_after = parse_retry_after(response.header("retry-after"));
      const int attempt = retry.attempt();
      if (success && !worth_repeating(0, refusal.code)) refuse(call, response, refusal, attempt);
      if (!retry.wait(retry_after, stop)) refuse(call, response, refusal, attempt);
    } catch (const TransportError& error) {
      const int attempt = retry.attempt();
      if (!error.worth_repeating() || !retry.wait(std::nullopt, stop))
        throw StoreError(without_secrets(fmt::format("{} of '{}' failed: {} (attempt {} of {})",
                                                     call.operation, call.object.shown(),
                                                     shown_begin(error.what()), attempt, options_.attempts)),
                         0, error.too_long() ? kTooLongCode : "");
    }
    ++repeated_;
  }
}

}  // namespace mox::file::s3
