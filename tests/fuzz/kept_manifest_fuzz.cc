// Any bytes under a checksum that is right are the manifest of kept images, whose entries lie within their
// file, or a problem is named.
#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "moxing/formats/tfrecord.h"
#include "moxing/image_sets/internal/kept_manifest.h"
#include "runtime/base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace mox::data;
  constexpr size_t kImages = 16;
  constexpr uint64_t kBytes = 1 << 20;
  std::string text(reinterpret_cast<const char*>(data), size);
  text += fmt::format("checksum {}\n", crc32c(std::as_bytes(std::span(text))));
  std::string problem;
  const internal::KeptEntries entries = internal::parse_manifest(text, "images", kImages, kBytes, &problem);
  MOX_ASSERT(entries.size() == kImages, "an entry an image");
  for (const auto& entry : entries)
    MOX_ASSERT(!entry || (problem.empty() && entry->end() <= kBytes), "an entry lies within the file");
  return 0;
}
