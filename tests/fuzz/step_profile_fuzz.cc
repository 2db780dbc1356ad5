// Any bytes are a profile of steps, from which a forecast follows, or a DataError.
#include <cmath>
#include <cstdint>

#include "moxing/job/forecast.h"
#include "runtime/base/error.h"
#include "tests/fuzz/harness/input_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const mox::fuzz::InputFile file(data, size);
  try {
    const mox::StepProfile profile = mox::read_step_profile(file.path());
    MOX_ASSERT(profile.ranks >= 1 && profile.node_samples >= 1 && profile.compute_s > 0, "a step takes time");
    MOX_ASSERT(!profile.jitter.empty(), "steps vary");
  } catch (const mox::DataError&) {
  }
  return 0;
}
