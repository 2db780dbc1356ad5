// What a store says of an object beside its bytes.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "moxing/file/s3/checksum.h"
#include "moxing/file/s3/http.h"

namespace mox::file::s3 {

// 64 TiB: no store takes more than 50 TB. What a store only claims to be larger is not believed, since memory
// and disk are asked for by it.
inline constexpr int64_t kMostObjectBytes = int64_t{1} << 46;

struct ObjectInfo {
  int64_t size = 0;
  std::string etag;  // as etag.h says
  std::chrono::system_clock::time_point mtime{};
  int64_t part_size = 0;    // of an upload in parts by this client; 0: unknown
  bool encrypted = false;   // by a key service or the owner's key: the ETag is no MD5 then
  Checksum checksum = {};   // where it was asked for
  bool appendable = false;  // made by OBS's append
  int64_t next_position = 0;
  // Whether the ETag or the checksum says what the bytes are, without more being known.
  bool tells_content() const;
};

// Of an answer's headers. DataError, naming the object as `shown`, for one without a size, and for a size
// above kMostObjectBytes.
ObjectInfo object_info_in(const HttpResponse& response, const std::string& shown);

// Of a header; nothing for what is no count.
std::optional<int64_t> count_in_header(std::string_view text);

// Whether an ETag is 32 hexadecimal digits: an MD5 of the content, if nothing else is known against it.
bool is_md5(const std::string& etag);

// By a key of its owner's (aws:kms, aws:kms:dsse, or one that came with the request): then the ETag is not
// the content's MD5.
bool is_encrypted(const HttpResponse& response);

}  // namespace mox::file::s3
