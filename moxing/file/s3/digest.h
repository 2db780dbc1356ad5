// The digests that stores speak of. Raw bytes in std::string unless a name says otherwise.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace mox::file::s3 {

std::string md5(std::string_view bytes);     // 16 bytes
std::string sha256(std::string_view bytes);  // 32 bytes
std::string hmac_sha256(std::string_view key, std::string_view bytes);
std::string hex(std::string_view bytes);  // lower case
std::string base64(std::string_view bytes);

// The bytes of lower or upper case hexadecimal digits; "" if the text is anything else.
std::string from_hex(std::string_view text);

// An MD5 piece by piece.
class Md5 {
 public:
  Md5();
  ~Md5();
  Md5(const Md5&) = delete;
  Md5& operator=(const Md5&) = delete;
  void update(std::string_view bytes);
  std::string finish();  // 16 bytes; begins anew

 private:
  void* context_;
};

}  // namespace mox::file::s3
