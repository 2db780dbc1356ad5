// Any bytes are an .npy or .npz file, or a DataError.
#include <cstdint>
#include <numeric>

#include "moxing/formats/npy.h"
#include "runtime/base/error.h"
#include "tests/fuzz/harness/heap_peak.h"

namespace mox::fuzz {

// The arrays of an archive may be compressed; one that is damaged has had room made for what its headers say,
// which is bounded.
size_t decoded_bytes(const unsigned char* data, size_t size) {
  try {
    const auto arrays = data::parse_npz(std::as_bytes(std::span(data, size)), "input");
    return std::accumulate(arrays.begin(), arrays.end(), size_t{0},
                           [](size_t bytes, const auto& array) { return bytes + array.second.bytes(); });
  } catch (const DataError&) {
    constexpr size_t kMostTimes = 1032;  // that an archive makes something smaller
    return size > 2 && data[0] == 'P' && data[1] == 'K' ? kMostTimes * size : 0;
  }
}

}  // namespace mox::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  try {
    // Bytes with a sign become int32.
    MOX_ASSERT(mox::data::parse_npy(bytes, "input").bytes() <= 4 * size, "the values come from the input");
  } catch (const mox::DataError&) {
  }
  try {
    mox::data::parse_npz(bytes, "input");
  } catch (const mox::DataError&) {
  }
  return 0;
}
