// Any lines are the headers of an object store's answer: what they say of an object is within its bounds, or
// a DataError.
#include <algorithm>
#include <cstdint>
#include <string_view>

#include "moxing/file/s3/etag.h"
#include "moxing/file/s3/object_info.h"
#include "runtime/base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace s3 = mox::file::s3;
  std::string_view left(reinterpret_cast<const char*>(data), size);
  s3::HttpResponse response;
  while (!left.empty()) {
    const size_t line = std::min(left.find('\n'), left.size() - 1) + 1;
    if (!response.take_header_line(left.substr(0, line))) break;  // as a transfer ends there
    left.remove_prefix(line);
  }
  try {
    const s3::ObjectInfo info = s3::object_info_in(response, "s3://bucket/key");
    MOX_ASSERT(
        info.size >= 0 && info.size <= s3::kMostObjectBytes && info.part_size >= 0 && info.next_position >= 0,
        "sizes and places are within their bounds");
    MOX_ASSERT(!info.tells_content() || s3::is_md5(info.etag) || info.checksum,
               "what tells the content is a digest of it");
    MOX_ASSERT(s3::parse_etag_text(s3::etag_text(info.etag)) == info.etag,
               "an ETag is read as it is written");
  } catch (const mox::DataError&) {
  }
  return 0;
}
