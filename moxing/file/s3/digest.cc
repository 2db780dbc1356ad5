#include "moxing/file/s3/digest.h"

#include <openssl/evp.h>

#include "runtime/base/error.h"

namespace mox::file::s3 {
namespace {

// Looked up once: OpenSSL looks up what EVP_md5() and EVP_sha256() name in every call, which costs more than
// the digest of a short text.
const EVP_MD* kind_of(const char* name) {
  const EVP_MD* const kind = EVP_MD_fetch(nullptr, name, nullptr);
  MOX_ASSERT(kind, "OpenSSL has the digest");
  return kind;
}
const EVP_MD* md5_kind() {
  static const EVP_MD* const kind = kind_of("MD5");
  return kind;
}

std::string digest_of(std::string_view bytes, const EVP_MD* kind) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  MOX_ASSERT(EVP_Digest(bytes.data(), bytes.size(), digest, &length, kind, nullptr) == 1,
             "OpenSSL makes the digest");
  return {reinterpret_cast<const char*>(digest), length};
}

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::string md5(std::string_view bytes) { return digest_of(bytes, md5_kind()); }
std::string sha256(std::string_view bytes) {
  static const EVP_MD* const kind = kind_of("SHA256");
  return digest_of(bytes, kind);
}

// By its definition (RFC 2104): OpenSSL's own call looks HMAC up each time.
std::string hmac_sha256(std::string_view key, std::string_view bytes) {
  constexpr size_t kBlock = 64;
  std::string inner = key.size() > kBlock ? sha256(key) : std::string(key);
  inner.resize(kBlock);
  std::string outer = inner;
  for (char& c : inner) c ^= 0x36;
  for (char& c : outer) c ^= 0x5c;
  return sha256(outer + sha256(inner.append(bytes)));
}

std::string hex(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const char c : bytes) {
    text += kDigits[static_cast<unsigned char>(c) >> 4];
    text += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return text;
}

std::string from_hex(std::string_view text) {
  if (text.size() % 2) return "";
  std::string bytes;
  for (size_t i = 0; i < text.size(); i += 2) {
    const int high = digit_of(text[i]), low = digit_of(text[i + 1]);
    if (high < 0 || low < 0) return "";
    bytes += static_cast<char>(high * 16 + low);
  }
  return bytes;
}

std::string base64(std::string_view bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');  // and OpenSSL's zero byte
  const int length =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                      reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  text.resize(length);
  return text;
}

Md5::Md5() : context_(EVP_MD_CTX_new()) {
  MOX_ASSERT(context_ && EVP_DigestInit_ex(static_cast<EVP_MD_CTX*>(context_), md5_kind(), nullptr) == 1,
             "OpenSSL has MD5");
}
Md5::~Md5() { EVP_MD_CTX_free(static_cast<EVP_MD_CTX*>(context_)); }
void Md5::update(std::string_view bytes) {
  MOX_ASSERT(EVP_DigestUpdate(static_cast<EVP_MD_CTX*>(context_), bytes.data(), bytes.size()) == 1, "MD5");
}
std::string Md5::finish() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  auto* context = static_cast<EVP_MD_CTX*>(context_);
  MOX_ASSERT(EVP_DigestFinal_ex(context, digest, &length) == 1 &&
                 EVP_DigestInit_ex(context, md5_kind(), nullptr) == 1,
             "MD5");
  return {reinterpret_cast<const char*>(digest), length};
}

}  // namespace mox::file::s3
