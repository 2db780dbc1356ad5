// Any bytes are a record of an image, whose parts lie within it, or a DataError that names it.
#include <cstdint>
#include <string_view>

#include "moxing/image_sets/internal/image_example.h"
#include "runtime/base/error.h"

namespace {

bool lies_within(std::string_view part, std::string_view whole) {
  return part.empty() || (part.data() >= whole.data() && part.end() <= whole.end());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view record(reinterpret_cast<const char*>(data), size);
  try {
    const auto example =
        mox::data::internal::read_image_example(std::as_bytes(std::span(record)), "file.tfrecord, record 3");
    const auto* const encoded = reinterpret_cast<const char*>(example.encoded.data());
    MOX_ASSERT(lies_within({encoded, example.encoded.size()}, record), "the image lies in the record");
    MOX_ASSERT(lies_within(example.text.value_or(""), record), "the name lies in the record");
  } catch (const mox::DataError& error) {
    MOX_ASSERT(std::string_view(error.what()).starts_with("file.tfrecord, record 3: "),
               "the record is named");
  }
  return 0;
}
