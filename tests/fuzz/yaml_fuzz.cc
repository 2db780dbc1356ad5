// Any bytes are a configuration, or a ConfigError.
#include <cstdint>

#include "moxing/config/internal/yaml.h"
#include "runtime/base/error.h"
#include "tests/fuzz/harness/input_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const mox::fuzz::InputFile file(data, size);
  static mox::internal::ConfigStore store;  // the options are there before a file is read
  for (mox::internal::Setting& setting : store.settings()) setting.written.reset();
  try {
    mox::internal::read_yaml(file.path(), &store);
  } catch (const mox::ConfigError&) {
  }
  return 0;
}
