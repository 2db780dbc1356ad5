// Any bytes are an image that a recipe makes a sample of, or a DataError. An image is larger than its file:
// it takes its decoded size and 16 MiB at most.
#include <zlib.h>

#include <cstdint>
#include <cstring>
#include <span>
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

namespace {

// A PNG whose chunks have the checksums that they should have: a search would not come past those.
std::vector<uint8_t> with_checksums(std::vector<uint8_t> png) {
  constexpr size_t kSignature = 8, kFrame = 12;  // of a chunk: length, type, checksum
  const auto number_at = [&](size_t at) {
    return uint32_t{png[at]} << 24 | uint32_t{png[at + 1]} << 16 | uint32_t{png[at + 2]} << 8 | png[at + 3];
  };
  for (size_t at = kSignature; at + kFrame <= png.size();) {
    const size_t length = number_at(at);
    if (length > png.size() - at - kFrame) break;
    const uint64_t sum = crc32(0, png.data() + at + 4, static_cast<uInt>(length + 4));
    for (size_t i = 0; i < 4; ++i) png[at + 8 + length + i] = static_cast<uint8_t>(sum >> (24 - 8 * i));
    at += kFrame + length;
  }
  return png;
}

void read(std::span<const uint8_t> input) {
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
        reader->read(std::as_bytes(input), "input", {.seed = 1, .epoch = 0, .sample = input.size()},
                     out.data());
      } catch (const mox::DataError&) {
      }
    }
  };
  read_as(float());
  read_as(mox::BFloat16());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  read({data, size});
  if (size < 8 || std::memcmp(data, "\x89PNG\r\n\x1a\n", 8) != 0) return 0;
  const std::vector<uint8_t> input(data, data + size), sealed = with_checksums(input);
  if (sealed != input) read(sealed);
  return 0;
}
