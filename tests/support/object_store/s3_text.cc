#include "tests/support/object_store/s3_text.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <cstdlib>

namespace mox::testing_store {

std::string decode_percent(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      out += static_cast<char>(std::strtol(std::string(text.substr(i + 1, 2)).c_str(), nullptr, 16));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string encode_percent(std::string_view text, bool keep_slashes) {
  std::string out;
  for (const unsigned char c : text) {
    if ((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
        c == '_' || c == '~' || (c == '/' && keep_slashes))
      out += static_cast<char>(c);
    else
      out += fmt::format("%{:02X}", c);
  }
  return out;
}

Parameters decode_query(std::string_view query) {
  Parameters parameters;
  while (!query.empty()) {
    const size_t end = query.find('&');
    const std::string_view one = query.substr(0, end);
    query = end == std::string_view::npos ? "" : query.substr(end + 1);
    const size_t equals = one.find('=');
    parameters.emplace_back(decode_percent(one.substr(0, equals)),
                            equals == std::string_view::npos ? "" : decode_percent(one.substr(equals + 1)));
  }
  return parameters;
}

bool has(const Parameters& parameters, std::string_view name) {
  for (const auto& [key, value] : parameters)
    if (key == name) return true;
  return false;
}

std::string get(const Parameters& parameters, std::string_view name) {
  for (const auto& [key, value] : parameters)
    if (key == name) return value;
  return "";
}

std::string xml_text(std::string_view text) {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20; };
  if (std::none_of(text.begin(), text.end(),
                   [&](char c) { return c == '&' || c == '<' || c == '>' || is_control(c); }))
    return std::string(text);
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (is_control(c))
      out += fmt::format("&#{};", static_cast<int>(c));
    else
      out += c;
  }
  return out;
}

std::string element(std::string_view name, std::string_view content) {
  return fmt::format("<{}>{}</{}>", name, xml_text(content), name);
}

std::string hex_of(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  out.reserve(2 * bytes.size());
  for (const unsigned char c : bytes) {
    out += kDigits[c >> 4];
    out += kDigits[c & 15];
  }
  return out;
}

std::string bytes_of_hex(std::string_view digits) {
  std::string out;
  for (size_t i = 0; i + 1 < digits.size(); i += 2)
    out += static_cast<char>(std::strtol(std::string(digits.substr(i, 2)).c_str(), nullptr, 16));
  return out;
}

namespace {
std::string digest_by(const EVP_MD* kind, std::string_view bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  EVP_Digest(bytes.data(), bytes.size(), digest, &length, kind, nullptr);
  return {reinterpret_cast<const char*>(digest), length};
}
std::string time_as(std::time_t time, const char* format) {
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  char text[64];
  return {text, std::strftime(text, sizeof text, format, &parts)};
}
}  // namespace

// Looked up once: OpenSSL does it in every call for EVP_md5() and EVP_sha256().
std::string md5_of(std::string_view bytes) {
  static const EVP_MD* const kind = EVP_MD_fetch(nullptr, "MD5", nullptr);
  return digest_by(kind, bytes);
}
std::string sha256_of(std::string_view bytes) {
  static const EVP_MD* const kind = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  return digest_by(kind, bytes);
}

std::string crc32c_of(std::string_view bytes) {
  uint32_t crc = 0xffffffff;
  for (const unsigned char byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc & 1 ? crc >> 1 ^ 0x82f63b78 : crc >> 1;
  }
  crc = ~crc;
  std::string out;
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(crc >> shift);
  return out;
}

std::string base64_of(std::string_view bytes) {
  std::string out((bytes.size() + 2) / 3 * 4 + 1, '\0');
  out.resize(static_cast<size_t>(EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                                 reinterpret_cast<const unsigned char*>(bytes.data()),
                                                 static_cast<int>(bytes.size()))));
  return out;
}

std::string iso_time(std::time_t time) { return time_as(time, "%Y-%m-%dT%H:%M:%S.000Z"); }
// With the names that every store writes, whatever the locale of the test is.
std::string http_time(std::time_t time) {
  constexpr std::string_view kDays = "SunMonTueWedThuFriSat",
                             kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  return std::string(kDays.substr(3 * parts.tm_wday, 3)) + time_as(time, ", %d ") +
         std::string(kMonths.substr(3 * parts.tm_mon, 3)) + time_as(time, " %Y %H:%M:%S GMT");
}

}  // namespace mox::testing_store
