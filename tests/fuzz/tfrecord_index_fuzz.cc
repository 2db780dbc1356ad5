// Any bytes are the kept index of a TFRecord file, whose offsets ascend within the file, or none.
#include <cstdint>

#include "moxing/formats/internal/tfrecord_index.h"
#include "runtime/base/error.h"
#include "tests/fuzz/harness/input_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const mox::fuzz::InputFile file(data, size);
  constexpr uint64_t kBytes = 200;
  const auto offsets = mox::data::internal::load_index(file.path(), {kBytes, 1});
  if (!offsets) return 0;
  MOX_ASSERT(offsets->front() == 0 && offsets->back() == kBytes, "from the file's begin to its end");
  for (size_t i = 1; i < offsets->size(); ++i)
    MOX_ASSERT((*offsets)[i] >= (*offsets)[i - 1] + mox::data::internal::kFrameBytes, "a record has a frame");
  return 0;
}
