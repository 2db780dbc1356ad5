#include "moxing/file/s3/object_info.h"

#include <fmt/format.h>

#include <charconv>

#include "moxing/file/s3/digest.h"
#include "moxing/file/s3/documents.h"
#include "moxing/file/s3/etag.h"
#include "runtime/base/error.h"

namespace mox::file::s3 {

std::optional<int64_t> count_in_header(std::string_view text) {
  int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || count < 0)
    return std::nullopt;
  return count;
}

ObjectInfo object_info_in(const HttpResponse& response, const std::string& shown) {
  const auto size = count_in_header(response.header("content-length"));
  if (!size) throw DataError(fmt::format("the store does not say how long '{}' is", shown));
  if (*size > kMostObjectBytes)
    throw DataError(fmt::format("the store says that '{}' has {} bytes; an object has at most {}", shown,
                                *size, kMostObjectBytes));
  ObjectInfo info;
  info.size = *size;
  info.etag = parse_etag_text(response.header("etag"));
  info.mtime = parse_time(response.header("last-modified"));
  info.part_size = count_in_header(response.header("x-amz-meta-mox-part-size")).value_or(0);
  info.encrypted = is_encrypted(response);
  info.checksum = checksum_in(response);
  info.appendable = response.header("x-obs-object-type") == "Appendable";
  info.next_position = count_in_header(response.header("x-obs-next-append-position")).value_or(info.size);
  return info;
}

bool ObjectInfo::tells_content() const { return (is_md5(etag) && !encrypted) || checksum; }

bool is_md5(const std::string& etag) { return etag.size() == 32 && from_hex(etag).size() == 16; }

bool is_encrypted(const HttpResponse& response) {
  return response.header("x-amz-server-side-encryption").starts_with("aws:kms") ||
         !response.header("x-amz-server-side-encryption-customer-algorithm").empty();
}

}  // namespace mox::file::s3
