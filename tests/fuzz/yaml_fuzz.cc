// Any bytes are a configuration, or a ConfigError. A value of yaml-cpp takes some hundred bytes, so that the
// number of values bounds what a file may take, and not its size.
#include <cstdint>

#include "moxing/config/internal/yaml.h"
#include "runtime/base/error.h"
#include "tests/fuzz/heap_peak.h"
#include "tests/fuzz/input_file.h"

namespace mox::fuzz {

size_t allowed_heap(const unsigned char* /*data*/, size_t size) { return 16 * size + (16 << 20); }

}  // namespace mox::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const mox::fuzz::InputFile file(data, size);
  mox::internal::ConfigStore store;
  try {
    mox::internal::read_yaml(file.path(), &store);
  } catch (const mox::ConfigError&) {
  }
  return 0;
}
