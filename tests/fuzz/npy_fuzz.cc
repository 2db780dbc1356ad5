// Any bytes are an .npy or .npz file, or a DataError.
#include <cstdint>

#include "moxing/formats/npy.h"
#include "runtime/base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  try {
    MOX_ASSERT(mox::data::parse_npy(bytes, "input").bytes() <= size, "the values come from the input");
  } catch (const mox::DataError&) {
  }
  try {
    mox::data::parse_npz(bytes, "input");
  } catch (const mox::DataError&) {
  }
  return 0;
}
