// Any bytes under a checksum that is right are the state of a checkpoint, which survives being written, or a
// DataError.
#include <cstdint>
#include <string>

#include "moxing/checkpoint/internal/checkpoint_state.h"
#include "moxing/checkpoint/internal/checksum_text.h"
#include "runtime/base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace mox::internal;
  const std::string sealed(reinterpret_cast<const char*>(data), size);
  try {
    decode_state(sealed, "input");
  } catch (const mox::DataError&) {
  }
  try {
    const CheckpointState state =
        decode_state("{\n  \"crc32\": \"" + checksum_text(crc32_of(sealed)) + "\",\n" + sealed, "input");
    const CheckpointState again = decode_state(encode_state(state), "input");
    MOX_ASSERT(again.state == state.state && again.global_step == state.global_step,
               "what is read is what is written");
  } catch (const mox::DataError&) {
  }
  return 0;
}
