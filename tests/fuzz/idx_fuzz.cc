// Any bytes are an IDX file or a DataError.
#include <cstdint>

#include "moxing/formats/idx_dataset.h"
#include "runtime/base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  try {
    const mox::Array array = mox::data::parse_idx(std::as_bytes(std::span(bytes, size)), "input");
    MOX_ASSERT(array.bytes() <= size * 1032, "the values come from the input");
  } catch (const mox::DataError&) {
  }
  return 0;
}
