#include "moxing/file/s3/signature.h"

#include <fmt/format.h>

#include <algorithm>

#include "moxing/file/s3/digest.h"
#include "moxing/file/s3/uri.h"

namespace mox::file::s3 {
namespace {

std::vector<const std::pair<std::string, std::string>*> sorted(const NamesAndValues& pairs) {
  std::vector<const std::pair<std::string, std::string>*> in_order;
  for (const auto& pair : pairs) in_order.push_back(&pair);
  std::sort(in_order.begin(), in_order.end(), [](const auto* a, const auto* b) { return *a < *b; });
  return in_order;
}

std::string signed_names(const NamesAndValues& headers) {
  std::string names;
  for (const auto* header : sorted(headers)) {
    if (!names.empty()) names += ';';
    names += header->first;
  }
  return names;
}

// Without white space at its ends, and with one space for several within.
std::string trimmed(std::string_view value) {
  std::string text;
  for (const char c : value)
    if (c != ' ' || (!text.empty() && text.back() != ' ')) text += c;
  if (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

// 20260131T120000Z
std::string time_text(std::time_t time) {
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y%m%dT%H%M%SZ", &parts)};
}

}  // namespace

std::string encoded_query(const NamesAndValues& query) {
  NamesAndValues encoded;
  for (const auto& [name, value] : query) encoded.emplace_back(percent_encode(name), percent_encode(value));
  std::string text;
  for (const auto* parameter : sorted(encoded))
    text += fmt::format("{}{}={}", text.empty() ? "" : "&", parameter->first, parameter->second);
  return text;
}

std::string canonical_request(const RequestToSign& request) {
  std::string headers;
  for (const auto* header : sorted(request.headers))
    headers += fmt::format("{}:{}\n", header->first, trimmed(header->second));
  return fmt::format("{}\n{}\n{}\n{}\n{}\n{}", request.method, request.path, encoded_query(request.query),
                     headers, signed_names(request.headers), request.payload_sha256);
}

std::string SigningKey::get(const std::string& secret_key, std::string_view region, const std::string& date) {
  const std::lock_guard lock(mutex_);
  if (secret_key != secret_key_ || region != region_ || date != date_ || key_.empty()) {
    secret_key_ = secret_key;
    region_ = region;
    date_ = date;
    key_ = hmac_sha256("AWS4" + secret_key, date);
    for (const std::string_view part : {region, std::string_view("s3"), std::string_view("aws4_request")})
      key_ = hmac_sha256(key_, part);
  }
  return key_;
}

void sign(RequestToSign& request, const Credentials& credentials, std::string_view region, std::time_t now,
          SigningKey& key) {
  const std::string time = time_text(now), date = time.substr(0, time.find('T'));
  request.headers.emplace_back("x-amz-date", time);
  request.headers.emplace_back("x-amz-content-sha256", request.payload_sha256);
  if (!credentials.session_token.empty())
    request.headers.emplace_back("x-amz-security-token", credentials.session_token);

  const std::string scope = fmt::format("{}/{}/s3/aws4_request", date, region);
  const std::string text =
      fmt::format("AWS4-HMAC-SHA256\n{}\n{}\n{}", time, scope, hex(sha256(canonical_request(request))));
  const std::string signature = hex(hmac_sha256(key.get(credentials.secret_key, region, date), text));
  request.headers.emplace_back(
      "authorization", fmt::format("AWS4-HMAC-SHA256 Credential={}/{},SignedHeaders={},Signature={}",
                                   credentials.access_key, scope, signed_names(request.headers), signature));
}

}  // namespace mox::file::s3
