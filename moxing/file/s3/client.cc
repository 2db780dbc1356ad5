#include "moxing/file/s3/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "moxing/file/s3/digest.h"
#include "moxing/file/s3/etag.h"
#include "moxing/file/s3/internal/call.h"
#include "moxing/file/s3/store_error.h"
#include "moxing/file/s3/uri.h"

namespace mox::file::s3 {
namespace {

// A key that XML 1.0 cannot hold.
bool fits_xml(const std::string& key) {
  return std::none_of(key.begin(), key.end(),
                      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

constexpr const char* kChecksumMode = "x-amz-checksum-mode";

// A body that is not the object's costs another request, a few times; then the object itself is damaged.
constexpr int kMostReadings = 3;

// A refusal may be longer than what was asked for.
constexpr int64_t kLongestRefusal = 64 << 10;

// What an answer says of the content and is not so; "" if it says nothing, or all is well.
std::string broken_promise(const ObjectInfo& info, std::string_view content) {
  if (is_md5(info.etag) && !info.encrypted) return hex(md5(content)) == info.etag ? "" : "MD5 " + info.etag;
  if (!info.checksum) return "";
  ChecksumHasher hasher(info.checksum.kind);
  hasher.update(content);
  return hasher.finish() == info.checksum.base64 ? "" : shown(info.checksum);
}

}  // namespace

std::string etag_of_parts(const std::vector<std::string>& md5s) {
  std::string all;
  for (const std::string& md5 : md5s) all += md5;
  return fmt::format("{}-{}", hex(md5(all)), md5s.size());
}

Client::Client(const StoreOptions& options)
    : options_(options),
      http_({.connections = options.connections,
             .verify_tls = options.verify_tls,
             .ca_file = options.ca_file,
             .connect_timeout_s = options.connect_timeout_s,
             .stall_s = options.stall_s}) {
  if (options_.region.empty()) options_.region = region_of_profile(options_);
}

Client::~Client() = default;

std::optional<ObjectInfo> Client::head(const ObjectName& object, std::stop_token stop) {
  try {
    return object_info_in(send({.operation = "HeadObject", .method = "HEAD", .object = object}, stop),
                          object.shown());
  } catch (const NotFound&) {
    return std::nullopt;
  }
}

std::optional<ObjectInfo> Client::head_with_checksum(const ObjectName& object, std::stop_token stop) {
  Call call{.operation = "HeadObject", .method = "HEAD", .object = object};
  if (!is_obs(object.scheme)) call.headers = {{kChecksumMode, "ENABLED"}};
  try {
    return object_info_in(send(call, stop), object.shown());
  } catch (const NotFound&) {
    return std::nullopt;
  }
}

Client::Call Client::whole_object(const ObjectName& object, int64_t most_bytes) const {
  Call call{.operation = "GetObject", .method = "GET", .object = object};
  if (!is_obs(object.scheme)) call.headers = {{kChecksumMode, "ENABLED"}};
  call.most_bytes = most_bytes;
  call.body_is_object = true;
  return call;
}

int64_t Client::size_of_part(const ObjectName& object, int number, std::stop_token stop) {
  Call call{.operation = "HeadObject", .method = "HEAD", .object = object};
  call.query = {{"partNumber", std::to_string(number)}};
  try {
    const HttpResponse response = send(call, stop);
    if (response.status != 206) return 0;  // the whole object
    return count_in_header(response.header("content-length")).value_or(0);
  } catch (const StoreError& error) {
    if (is_away(error)) throw;  // another time it may say it
    return 0;
  }
}

std::string Client::get(const ObjectName& object, int64_t most_bytes, ObjectInfo* info,
                        std::stop_token stop) {
  return get(object, most_bytes, info, std::move(stop), std::nullopt);
}

void Client::begin_get(const ObjectName& object, int64_t size, std::function<void(HttpAttempt)> on_end,
                       std::stop_token stop) {
  begin(whole_object(object, std::max(size, kLongestRefusal)), std::move(on_end), std::move(stop));
}

std::string Client::md5_promised_by(const HttpAttempt& attempt, int64_t size) {
  const HttpResponse& response = attempt.response;
  if (attempt.failure || response.status != 200 || std::ssize(response.body) != size) return "";
  std::string etag = parse_etag_text(response.header("etag"));
  return is_md5(etag) && !is_encrypted(response) ? etag : "";
}

std::string Client::get(const ObjectName& object, int64_t most_bytes, ObjectInfo* info, std::stop_token stop,
                        std::optional<HttpAttempt> begun) {
  for (int reading = 1;; ++reading) {
    HttpResponse response = send(whole_object(object, most_bytes), stop, std::exchange(begun, std::nullopt));
    if (response.header("content-length").empty())
      response.headers["content-length"] = std::to_string(response.body.size());
    const ObjectInfo found = object_info_in(response, object.shown());
    if (info) *info = found;
    const std::string broken = broken_promise(found, response.body);
    if (broken.empty()) return std::move(response.body);
    if (reading == kMostReadings)
      throw DataError(fmt::format("'{}' has arrived {} times with another content than its {} says",
                                  object.shown(), reading, broken));
  }
}

std::string Client::get_same(const ObjectName& object, const ObjectInfo& known, ObjectInfo* info,
                             std::stop_token stop) {
  return get_same(object, known, info, std::move(stop), std::optional<HttpAttempt>());
}

std::string Client::get_same(const ObjectName& object, const ObjectInfo& known, ObjectInfo* info,
                             std::stop_token stop, HttpAttempt begun) {
  return get_same(object, known, info, std::move(stop), std::optional(std::move(begun)));
}

std::string Client::get_same(const ObjectName& object, const ObjectInfo& known, ObjectInfo* info,
                             std::stop_token stop, std::optional<HttpAttempt> begun) {
  const auto look = [&] {
    auto found = head(object, stop);
    if (!found) throw NotFound(fmt::format("'{}' was removed while it was read", object.shown()));
    return *std::move(found);
  };
  const auto require_same = [&](const std::string& etag, int64_t size) {
    if (!known.etag.empty() && !same_version(etag, known.etag))
      throw changed_object(object.shown(), known.etag, etag);
    if (size != known.size) throw changed_size(object.shown(), known.size, size);
  };
  ObjectInfo arrived;
  std::string content;
  try {
    content = get(object, std::max(known.size, kLongestRefusal), &arrived, stop, std::move(begun));
  } catch (const StoreError& error) {
    if (error.code() != kTooLongCode) throw;
    const ObjectInfo now = look();
    require_same(now.etag, now.size);
    throw;
  }
  // An answer without an ETag does not say whose it is; the object itself does.
  const bool is_silent = arrived.etag.empty() && !known.etag.empty();
  require_same(is_silent ? look().etag : arrived.etag, content.size());
  if (info) *info = std::move(arrived);
  return content;
}

std::string Client::get_range(const ObjectName& object, int64_t offset, int64_t length,
                              const std::string& etag, std::stop_token stop) {
  Call call{.operation = "GetObject", .method = "GET", .object = object};
  call.headers = {{"range", fmt::format("bytes={}-{}", offset, offset + length - 1)}};
  if (is_condition(etag)) call.headers.emplace_back("if-match", etag_text(etag));
  call.most_bytes = std::max(length, kLongestRefusal);
  call.body_is_object = true;
  // Says it if the object is another one now.
  const auto require_unchanged = [&] {
    const auto now = head(object, stop);
    if (!now) throw NotFound(fmt::format("'{}' was removed while it was read", object.shown()));
    if (!same_version(now->etag, etag)) throw changed_object(object.shown(), etag, now->etag);
  };
  for (int reading = 1;; ++reading) {
    HttpResponse response;
    try {
      response = send(call, stop);
    } catch (const StoreError& error) {
      // 416 by a store that does not hear the condition: it has become shorter.
      if (!etag.empty() && (error.status() == kChangedStatus || error.status() == 416)) require_unchanged();
      throw;
    }
    const std::string range = response.header("content-range"),
                      arrived = parse_etag_text(response.header("etag"));
    const bool whole =
        response.status == 200 && offset == 0;  // a store may ignore a range that is everything
    const bool of_another = !etag.empty() && !arrived.empty() && !same_version(arrived, etag);
    // Where neither a condition was sent nor an ETag has come, the object itself says it.
    if (of_another || (arrived.empty() && is_weak(etag))) require_unchanged();
    if (std::ssize(response.body) != length ||
        (!whole && (response.status != 206 ||
                    !range.starts_with(fmt::format("bytes {}-{}/", offset, offset + length - 1)))))
      throw DataError(fmt::format(
          "asked for bytes {} to {} of '{}', the store has sent {} bytes, status {}, '{}'", offset,
          offset + length - 1, object.shown(), response.body.size(), response.status, range));
    if (!of_another) return std::move(response.body);
    if (reading == kMostReadings)
      throw DataError(fmt::format("'{}' has arrived {} times with the ETag {}, and has {}", object.shown(),
                                  reading, arrived, etag));
  }
}

std::string Client::put(const ObjectName& object, std::string_view body, const std::string& md5,
                        std::stop_token stop) {
  Call call{.operation = "PutObject", .method = "PUT", .object = object, .body = body};
  call.headers = {{"content-md5", base64(md5)}, {"content-type", "application/octet-stream"}};
  for (int sending = 1;; ++sending) {
    const HttpResponse response = send(call, stop);
    std::string etag = parse_etag_text(response.header("etag"));
    const bool comparable = is_md5(etag) && !is_encrypted(response);
    if (!comparable || etag == hex(md5)) return etag;
    if (sending == kMostReadings)
      throw DataError(
          fmt::format("the store says that '{}' has arrived with the MD5 {}, {} times; it was sent with {}",
                      object.shown(), etag, sending, hex(md5)));
  }
}

void Client::remove(const ObjectName& object, std::stop_token stop) {
  try {
    send({.operation = "DeleteObject", .method = "DELETE", .object = object}, stop);
  } catch (const NotFound&) {
    // Stores differ in what they say of a key that is not there; after a lost answer it is not.
  }
}

std::vector<KeptKey> Client::remove_many(const ObjectName& bucket, const std::vector<std::string>& keys,
                                         std::stop_token stop) {
  constexpr size_t kMostKeys = 1000;
  std::vector<KeptKey> kept;
  std::vector<std::string> batch;
  const auto send_batch = [&] {
    if (batch.empty()) return;
    const std::string document = delete_document(batch);
    Call call{.operation = "DeleteObjects", .method = "POST", .object = bucket, .query = {{"delete", ""}}};
    call.object.key.clear();
    call.headers = {{"content-md5", base64(md5(document))}, {"content-type", "application/xml"}};
    call.body = document;
    for (KeptKey& key : read_document(call, send(call, stop), parse_delete_result))
      kept.push_back(std::move(key));
    batch.clear();
  };
  for (const std::string& key : keys) {
    if (fits_xml(key)) {
      batch.push_back(key);
    } else {
      try {
        remove({bucket.bucket, key, bucket.scheme}, stop);
      } catch (const StoreError& error) {
        kept.push_back({key, error.what()});
      }
    }
    if (batch.size() == kMostKeys) send_batch();
  }
  send_batch();
  return kept;
}

std::string Client::copy(const ObjectName& from, const ObjectName& to, const std::string& etag,
                         std::stop_token stop) {
  Call call{.operation = "CopyObject", .method = "PUT", .object = to};
  call.headers = {{"x-amz-copy-source", "/" + from.bucket + "/" + percent_encode(from.key, true)}};
  if (is_condition(etag)) call.headers.emplace_back("x-amz-copy-source-if-match", etag_text(etag));
  return read_document(call, send(call, stop), parse_etag);
}

bool Client::has_append(const std::string& scheme) const {
  if (options_.append != StoreOptions::Append::kAuto) return options_.append == StoreOptions::Append::kNative;
  return is_obs(scheme);
}

bool Client::is_obs(const std::string& scheme) const {
  return scheme == "obs" || options_.endpoint.find(".myhuaweicloud.com") != std::string::npos;
}

void Client::append(const ObjectName& object, int64_t position, std::string_view body, std::stop_token stop) {
  Call call{.operation = "AppendObject", .method = "POST", .object = object};
  call.query = {{"append", ""}, {"position", std::to_string(position)}};
  call.headers = {{"content-md5", base64(md5(body))}, {"content-type", "application/octet-stream"}};
  call.body = body;
  const int64_t repeated_before = repeated_.load();
  try {
    send(call, stop);
  } catch (const StoreError& error) {
    // If an answer was lost, what was sent may be there already: then the object ends where it should.
    if (error.status() != 409 || repeated_.load() == repeated_before) throw;
    const auto found = head(object, stop);
    const int64_t length = body.size();
    if (!found || found->size != position + length ||
        get_range(object, position, length, found->etag, stop) != body)
      throw;
  }
}

}  // namespace mox::file::s3
