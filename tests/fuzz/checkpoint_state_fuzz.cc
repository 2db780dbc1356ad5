// Any bytes under a checksum that is right are the state of a checkpoint, which survives being written,
// or a DataError.
#include <cstdint>
#include <string>

#include "moxing/checkpoint/internal/checksum_text.h"
#include "moxing/checkpoint/internal/state_file.h"
#include "runtime/base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace mox::internal;
  const std::string sealed(reinterpret_cast<const char*>(data), size);
  try {
    decode_state_file(sealed, "input");
  } catch (const mox::DataError&) {
  }
  StateFile state;
  try {
    state =
        decode_state_file("{\n  \"crc32\": \"" + checksum_text(crc32_of(sealed)) + "\",\n" + sealed, "input");
  } catch (const mox::DataError&) {
    return 0;
  }
  const StateFile again = decode_state_file(encode_state_file(state), "input");
  MOX_ASSERT(again.state == state.state && again.global_step == state.global_step,
             "what is read is what is written");
  return 0;
}
