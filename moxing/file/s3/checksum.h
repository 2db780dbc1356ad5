// What stores say of the bytes of a whole object beside its ETag: x-amz-checksum-*, if they are asked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "moxing/file/s3/http.h"
#include "runtime/base/file.h"

namespace mox::file::s3 {

struct Checksum {
  enum class Kind { kNone, kCrc32c, kSha256 } kind = Kind::kNone;
  std::string base64 = {};
  explicit operator bool() const { return kind != Kind::kNone; }
};

// Of an answer; SHA-256 if it has both. One that was made of those of parts is none: it says nothing of the
// bytes to who does not know the parts.
Checksum checksum_in(const HttpResponse& response);

// For messages.
std::string shown(const Checksum& checksum);

// Of content that comes in order, piece by piece.
class ChecksumHasher {
 public:
  explicit ChecksumHasher(Checksum::Kind kind);
  void update(std::string_view bytes);
  std::string finish();  // in base64; call once, last

 private:
  uint32_t crc_ = 0;
  std::optional<Sha256> sha256_;
};

}  // namespace mox::file::s3
