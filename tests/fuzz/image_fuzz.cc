// Any bytes are an image that a recipe makes a sample of, or a DataError. An image is larger than its file:
// it takes its decoded size and 16 MiB at most.
#include <cstdint>
#include <vector>

#include "moxing/image/augmentation.h"
#include "moxing/image/decode.h"
#include "runtime/base/error.h"
#include "tests/fuzz/harness/heap_peak.h"

namespace mox::fuzz {

size_t decoded_bytes(const unsigned char* data, size_t size) {
  try {
    image::Decoder decoder({.pixels = 1 << 20});
    decoder.open(std::as_bytes(std::span(data, size)), "input");
    return 3 * static_cast<size_t>(decoder.width()) * static_cast<size_t>(decoder.height());
  } catch (const DataError&) {
    return 0;
  }
}

size_t allowed_heap(const unsigned char* data, size_t size) {
  return size + decoded_bytes(data, size) + (16 << 20);
}

}  // namespace mox::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // Of this input alone: what readers of more than one keep between them would not count.
  const mox::image::DecodeLimits limits{.pixels = 1 << 20};
  mox::image::ImageReader exact(
      {.height = 9, .width = 7, .crop = mox::image::Crop::kRandomResized, .flip = true}, limits);
  mox::image::ImageReader fast({.height = 5,
                                .width = 6,
                                .crop = mox::image::Crop::kCentre,
                                .resize_shorter = 8,
                                .resize_shorter_max = 8,
                                .fast_decode = true},
                               limits);
  const auto read_as = [&](auto value) {
    std::vector<decltype(value)> out(3 * 9 * 7);
    for (auto* reader : {&exact, &fast}) {
      try {
        reader->read(std::as_bytes(std::span(data, size)), "input", {.seed = 1, .epoch = 0, .sample = size},
                     out.data());
      } catch (const mox::DataError&) {
      }
    }
  };
  read_as(float());
  read_as(mox::BFloat16());
  return 0;
}
