// Any answer of an object store is a value or a DataError: listings, refusals, uploads, times.
#include <cstdint>
#include <string>
#include <string_view>

#include "moxing/file/s3/documents.h"
#include "moxing/file/s3/retry.h"
#include "runtime/base/error.h"

namespace {

template <typename Function>
void tolerate(Function&& parse) {
  try {
    parse();
  } catch (const mox::DataError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace s3 = mox::file::s3;
  const std::string text(reinterpret_cast<const char*>(data), size);
  s3::parse_refusal(text);
  tolerate([&] {
    for (const s3::ListedObject& object : s3::parse_listing(text).objects)
      MOX_ASSERT(!object.key.empty() && object.size >= 0, "an object has a key and a size");
  });
  tolerate([&] { MOX_ASSERT(!s3::parse_upload_id(text).empty(), "an upload has an id"); });
  tolerate([&] { MOX_ASSERT(!s3::parse_etag(text).empty(), "an ETag is not empty"); });
  tolerate([&] {
    for (const s3::ListedPart& part : s3::parse_parts(text).parts)
      MOX_ASSERT(part.number >= 1 && part.number <= 10'000 && part.size >= 0,
                 "a part has a number and a size");
  });
  tolerate([&] { s3::parse_uploads(text); });
  tolerate([&] { s3::parse_delete_result(text); });
  s3::parse_time(text);
  if (const auto seconds = s3::parse_retry_after(text))
    MOX_ASSERT(*seconds >= 0, "nobody waits less than not");
  return 0;
}
