#include "moxing/file/s3/digest.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "runtime/base/error.h"

namespace mox::file::s3 {
namespace {

std::string digest_of(std::string_view bytes, const EVP_MD* kind) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  MOX_ASSERT(EVP_Digest(bytes.data(), bytes.size(), digest, &length, kind, nullptr) == 1,
             "OpenSSL has the digest");
  return {reinterpret_cast<const char*>(digest), length};
}

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::string md5(std::string_view bytes) { return digest_of(bytes, EVP_md5()); }
std::string sha256(std::string_view bytes) { return digest_of(bytes, EVP_sha256()); }

std::string hmac_sha256(std::string_view key, std::string_view bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  MOX_ASSERT(HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                  reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest, &length),
             "OpenSSL has HMAC");
  return {reinterpret_cast<const char*>(digest), length};
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
  MOX_ASSERT(context_ && EVP_DigestInit_ex(static_cast<EVP_MD_CTX*>(context_), EVP_md5(), nullptr) == 1,
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
                 EVP_DigestInit_ex(context, EVP_md5(), nullptr) == 1,
             "MD5");
  return {reinterpret_cast<const char*>(digest), length};
}

}  // namespace mox::file::s3
