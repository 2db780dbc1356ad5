// Any bytes are an IDX file or a DataError.
#include <cstdint>

#include "moxing/formats/idx_dataset.h"
#include "runtime/base/error.h"
#include "tests/fuzz/harness/heap_peak.h"

namespace mox::fuzz {

// A file may be compressed; one that is damaged has had room made for what its header says, which is bounded.
size_t decoded_bytes(const unsigned char* data, size_t size) {
  try {
    return data::parse_idx(std::as_bytes(std::span(data, size)), "input").bytes();
  } catch (const DataError&) {
    constexpr size_t kMostTimes = 1032;  // that gzip makes something smaller
    return size > 2 && data[0] == 0x1f && data[1] == 0x8b ? kMostTimes * size : 0;
  }
}

}  // namespace mox::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  try {
    const mox::Array array = mox::data::parse_idx(std::as_bytes(std::span(bytes, size)), "input");
    MOX_ASSERT(array.bytes() <= size * 1032, "the values come from the input");
  } catch (const mox::DataError&) {
  }
  return 0;
}
