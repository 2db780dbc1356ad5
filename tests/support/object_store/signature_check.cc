#include "tests/support/object_store/signature_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "tests/support/object_store/s3_text.h"

namespace mox::testing_store {
namespace {

// HMAC by its definition (RFC 2104): OpenSSL's own call looks its algorithms up each time.
std::string mac(std::string key, const std::string& text) {
  constexpr size_t kBlock = 64;
  if (key.size() > kBlock) key = sha256_of(key);
  key.resize(kBlock);
  std::string inner = key, outer = key;
  for (char& c : inner) c ^= 0x36;
  for (char& c : outer) c ^= 0x5c;
  return sha256_of(outer + sha256_of(inner + text));
}

std::string between(const std::string& text, const std::string& begin, char end) {
  const size_t at = text.find(begin);
  if (at == std::string::npos) return "";
  const size_t from = at + begin.size();
  return text.substr(from, text.find(end, from) - from);
}

std::vector<std::string> split(const std::string& text, char by) {
  std::vector<std::string> parts{""};
  for (const char c : text) {
    if (c == by)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

std::string header(const ArrivedRequest& request, const std::string& name) {
  const auto found = request.headers.find(name);
  return found == request.headers.end() ? "" : found->second;
}

std::string single_spaces(const std::string& value) {
  std::string out;
  for (const char c : value)
    if (!(c == ' ' && (out.empty() || out.back() == ' '))) out += c;
  while (out.ends_with(' ')) out.pop_back();
  return out;
}

// Of a day; each thread keeps the last one, as stores do.
const std::string& signing_key(const std::string& secret, const std::vector<std::string>& scope) {
  thread_local std::vector<std::string> of;
  thread_local std::string key;
  std::vector<std::string> wanted = scope;
  wanted[0] = secret;
  if (wanted == of) return key;
  key = "AWS4" + secret;
  for (size_t i = 1; i < scope.size(); ++i) key = mac(key, scope[i]);
  of = std::move(wanted);
  return key;
}

}  // namespace

std::string signature_trouble(const ArrivedRequest& request, const Keys& keys, std::time_t now) {
  const std::string authorization = header(request, "authorization") + ",";
  if (!authorization.starts_with("AWS4-HMAC-SHA256 ")) return "AccessDenied";
  const std::vector<std::string> scope = split(between(authorization, "Credential=", ','), '/');
  const std::vector<std::string> names = split(between(authorization, "SignedHeaders=", ','), ';');
  const std::string signature = between(authorization, "Signature=", ',');
  if (scope.size() != 5 || scope[3] != "s3" || scope[4] != "aws4_request")
    return "AuthorizationHeaderMalformed";
  if (scope[0] != keys.access) return "InvalidAccessKeyId";
  if (scope[2] != keys.region) return "AuthorizationHeaderMalformed";
  if (!keys.session_token.empty() && header(request, "x-amz-security-token") != keys.session_token)
    return "InvalidToken";

  const std::string time = header(request, "x-amz-date");
  std::tm parts{};
  if (!::strptime(time.c_str(), "%Y%m%dT%H%M%SZ", &parts) || !time.starts_with(scope[1]))
    return "AccessDenied";
  if (std::abs(::timegm(&parts) - now) > 15 * 60) return "RequestTimeTooSkewed";

  // Every header of Amazon's, and the host, must be under the signature.
  if (!std::is_sorted(names.begin(), names.end())) return "SignatureDoesNotMatch";
  const auto is_signed = [&](const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (!is_signed("host")) return "AccessDenied";
  for (const auto& [name, value] : request.headers)
    if (name.starts_with("x-amz-") && !is_signed(name)) return "AccessDenied";

  const std::string payload = header(request, "x-amz-content-sha256");
  if (payload != "UNSIGNED-PAYLOAD" && payload != hex_of(sha256_of(request.body)))
    return "XAmzContentSHA256Mismatch";

  const size_t mark = request.target.find('?');
  Parameters query;
  if (mark != std::string::npos)
    for (auto& [name, value] : decode_query(std::string_view(request.target).substr(mark + 1)))
      query.emplace_back(encode_percent(name, false), encode_percent(value, false));
  std::sort(query.begin(), query.end());
  std::string canonical =
      request.method + "\n" +
      encode_percent(decode_percent(std::string_view(request.target).substr(0, mark)), true) + "\n";
  for (size_t i = 0; i < query.size(); ++i)
    canonical += (i ? "&" : "") + query[i].first + "=" + query[i].second;
  canonical += "\n";
  std::string list;
  for (const std::string& name : names) {
    canonical += name + ":" + single_spaces(header(request, name)) + "\n";
    list += (list.empty() ? "" : ";") + name;
  }
  canonical += "\n" + list + "\n" + payload;

  const std::string text = fmt::format("AWS4-HMAC-SHA256\n{}\n{}/{}/s3/aws4_request\n{}", time, scope[1],
                                       scope[2], hex_of(sha256_of(canonical)));
  return hex_of(mac(signing_key(keys.secret, scope), text)) == signature ? "" : "SignatureDoesNotMatch";
}

}  // namespace mox::testing_store
