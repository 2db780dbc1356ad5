#include "moxing/file/s3/checksum.h"

#include <fmt/format.h>

#include <span>

#include "moxing/file/s3/digest.h"
#include "runtime/base/crc32c.h"

namespace mox::file::s3 {

Checksum checksum_in(const HttpResponse& response) {
  constexpr size_t kSha256Digits = 44, kCrc32cDigits = 8;  // and longer where "-PARTS" follows
  if (response.header("x-amz-checksum-type") == "COMPOSITE") return {};
  if (std::string text = response.header("x-amz-checksum-sha256"); text.size() == kSha256Digits)
    return {Checksum::Kind::kSha256, std::move(text)};
  if (std::string text = response.header("x-amz-checksum-crc32c"); text.size() == kCrc32cDigits)
    return {Checksum::Kind::kCrc32c, std::move(text)};
  return {};
}

std::string shown(const Checksum& checksum) {
  return fmt::format("{} {}", checksum.kind == Checksum::Kind::kSha256 ? "SHA-256" : "CRC-32C",
                     checksum.base64);
}

ChecksumHasher::ChecksumHasher(Checksum::Kind kind) {
  if (kind == Checksum::Kind::kSha256) sha256_.emplace();
}

void ChecksumHasher::update(std::string_view bytes) {
  if (sha256_)
    sha256_->update(bytes);
  else
    crc_ = crc32c(std::as_bytes(std::span(bytes)), crc_);
}

std::string ChecksumHasher::finish() {
  if (sha256_) return base64(from_hex(sha256_->hex()));
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(crc_ >> shift);
  return base64(bytes);
}

}  // namespace mox::file::s3
