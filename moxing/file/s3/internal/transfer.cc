#include "moxing/file/s3/internal/transfer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace mox::file::s3::internal {
namespace {

constexpr int64_t kLowestRate = 1024;  // bytes a second

void moved(Transfer& transfer) { transfer.last_progress = std::chrono::steady_clock::now(); }

void arrived(Transfer& transfer, size_t bytes) {
  moved(transfer);
  if (transfer.counted == 0) transfer.counted_since = transfer.last_progress;
  transfer.counted += static_cast<int64_t>(bytes);
}

size_t take_body(char* bytes, size_t, size_t size, void* context) {
  auto& transfer = *static_cast<Transfer*>(context);
  arrived(transfer, size);
  std::string& body = transfer.response.body;
  if (body.size() + size > static_cast<size_t>(transfer.request.most_bytes)) {
    transfer.too_long = true;
    return 0;
  }
  if (body.empty()) {
    curl_off_t length = -1;
    curl_easy_getinfo(transfer.handle, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    if (length > 0 && length <= transfer.request.most_bytes) body.reserve(length);
  }
  body.append(bytes, size);
  return size;
}

size_t take_header(char* bytes, size_t, size_t size, void* context) {
  auto& transfer = *static_cast<Transfer*>(context);
  arrived(transfer, size);
  const std::string_view line(bytes, size);
  if (line == "\r\n" || line == "\n") transfer.has_all_headers = true;
  if (line.starts_with("HTTP/")) transfer.has_all_headers = false;
  transfer.has_too_many_fields = !transfer.response.take_header_line(line);
  return transfer.has_too_many_fields ? 0 : size;
}

size_t give_body(char* bytes, size_t, size_t room, void* context) {
  auto& transfer = *static_cast<Transfer*>(context);
  moved(transfer);
  const size_t size = std::min(room, transfer.request.body.size() - transfer.sent);
  std::memcpy(bytes, transfer.request.body.data() + transfer.sent, size);
  transfer.sent += size;
  return size;
}

int rewind_body(void* context, curl_off_t offset, int origin) {
  auto& transfer = *static_cast<Transfer*>(context);
  if (origin != SEEK_SET || offset < 0 || static_cast<size_t>(offset) > transfer.request.body.size())
    return CURL_SEEKFUNC_FAIL;
  transfer.sent = offset;
  return CURL_SEEKFUNC_OK;
}

void set_method(CURL* handle, const HttpRequest& request) {
  if (request.method == "HEAD") {
    curl_easy_setopt(handle, CURLOPT_NOBODY, 1L);
  } else if (request.method == "PUT" || request.method == "POST") {
    curl_easy_setopt(handle, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(handle, CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    curl_easy_setopt(handle, CURLOPT_CUSTOMREQUEST, request.method.c_str());
  } else if (request.method != "GET") {
    curl_easy_setopt(handle, CURLOPT_CUSTOMREQUEST, request.method.c_str());
  }
}

}  // namespace

void Transfer::prepare(const HttpOptions& options) {
  moved(*this);
  curl_easy_setopt(handle, CURLOPT_PRIVATE, this);
  curl_easy_setopt(handle, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(handle, CURLOPT_PATH_AS_IS, 1L);  // keys may have "/../" in them
  curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(handle, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(options.connect_timeout_s * 1000));
  curl_easy_setopt(handle, CURLOPT_BUFFERSIZE, 256L << 10);
  curl_easy_setopt(handle, CURLOPT_UPLOAD_BUFFERSIZE, 256L << 10);
  curl_easy_setopt(handle, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, detail);
  curl_easy_setopt(handle, CURLOPT_USERAGENT, "moxing");
  curl_easy_setopt(handle, CURLOPT_SSL_VERIFYPEER, options.verify_tls ? 1L : 0L);
  curl_easy_setopt(handle, CURLOPT_SSL_VERIFYHOST, options.verify_tls ? 2L : 0L);
  if (!options.ca_file.empty()) curl_easy_setopt(handle, CURLOPT_CAINFO, options.ca_file.c_str());
  if (!options.use_proxy) curl_easy_setopt(handle, CURLOPT_PROXY, "");
  set_method(handle, request);
  for (const auto& [name, value] : request.headers)  // an empty one needs a semicolon to be sent
    headers = curl_slist_append(headers, (value.empty() ? name + ";" : name + ": " + value).c_str());
  for (const char* unwanted : {"Expect:", "Transfer-Encoding:", "Accept:"})
    headers = curl_slist_append(headers, unwanted);
  curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers);
  curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, take_body);
  curl_easy_setopt(handle, CURLOPT_WRITEDATA, this);
  curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, take_header);
  curl_easy_setopt(handle, CURLOPT_HEADERDATA, this);
  curl_easy_setopt(handle, CURLOPT_READFUNCTION, give_body);
  curl_easy_setopt(handle, CURLOPT_READDATA, this);
  curl_easy_setopt(handle, CURLOPT_SEEKFUNCTION, rewind_body);
  curl_easy_setopt(handle, CURLOPT_SEEKDATA, this);
}

void Transfer::conclude(CURLcode how) {
  result = how;
  long status = 0;
  curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
  response.status = static_cast<int>(status);
  curl_off_t length = -1;
  curl_easy_getinfo(handle, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
  if (result == CURLE_OK && request.method != "HEAD" && length >= 0 &&
      static_cast<size_t>(length) != response.body.size())
    result = CURLE_PARTIAL_FILE;
  // A connection that is closed among the headers looks to libcurl like an answer without a body; and of a
  // success without a length nobody can say whether all of it has come.
  const bool has_length = length >= 0 || !response.header("transfer-encoding").empty() || status == 204;
  const bool is_success = status >= 200 && status < 300;
  if (result == CURLE_OK && (!has_all_headers || (is_success && request.method != "HEAD" && !has_length)))
    result = CURLE_PARTIAL_FILE;
  if (result == CURLE_OK) return;
  if (too_long)
    failure = fmt::format("the answer is longer than the {} bytes that were expected", request.most_bytes);
  else if (has_too_many_fields)
    failure = fmt::format("the answer has more than {} header fields", kMostHeaderFields);
  else if (is_too_slow)
    failure = fmt::format("less than {} bytes a second have come for too long", kLowestRate);
  else if (how == CURLE_OPERATION_TIMEDOUT && !detail[0])
    failure = "nothing has moved for too long";
  else if (has_bad_proxy())
    failure =
        "the proxy that the environment names (http_proxy, https_proxy, all_proxy) is not "
        "[http://][USER:PASSWORD@]HOST[:PORT]";
  else
    failure = detail[0] ? detail : curl_easy_strerror(result);
  if (speaks_no_tls()) failure += "; this server speaks no TLS: http:// in the endpoint, or S3_USE_HTTPS=0";
  if (result == CURLE_SSL_CACERT_BADFILE)
    failure +=
        "; that is the list of those who may vouch for a server: install ca-certificates, or name a file with "
        "it (file.ca_file, AWS_CA_BUNDLE)";
}

bool Transfer::stands_still(std::chrono::steady_clock::time_point now, double stall_s) {
  const std::chrono::duration<double> longest(stall_s);
  if (now - last_progress > longest) return true;
  // Where a store does something that takes long it keeps the connection alive by single spaces.
  if (request.method != "GET" || counted == 0 || now - counted_since < longest) return false;
  is_too_slow = static_cast<double>(counted) < static_cast<double>(kLowestRate) * stall_s;
  counted = 0;
  return is_too_slow;
}

bool Transfer::speaks_no_tls() const {
  return result == CURLE_SSL_CONNECT_ERROR &&
         std::string_view(detail).find("wrong version number") != std::string_view::npos;
}

bool Transfer::has_bad_proxy() const { return std::string_view(detail).starts_with("Unsupported proxy"); }

void Transfer::wait() {
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [this] { return has_ended_; });
}

void Transfer::end() {
  if (when_ended) return std::exchange(when_ended, nullptr)();
  const std::lock_guard lock(mutex_);  // until the notification is over: the caller destroys this after it
  has_ended_ = true;
  ended_.notify_one();
}

bool Transfer::worth_repeating() const {
  if (too_long || has_too_many_fields || speaks_no_tls() || has_bad_proxy()) return false;
  switch (result) {
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_URL_MALFORMAT:
    case CURLE_OUT_OF_MEMORY:
      return false;
    default:
      return true;
  }
}

}  // namespace mox::file::s3::internal
