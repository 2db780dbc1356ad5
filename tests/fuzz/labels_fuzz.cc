// Any text is a list of label names, or a DataError.
#include <cstdint>
#include <string_view>

#include "moxing/image_sets/image_options.h"
#include "runtime/base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto names = mox::data::parse_label_names({reinterpret_cast<const char*>(data), size}, "input");
    MOX_ASSERT(!names.empty() && names.size() <= size, "each label takes a line");
  } catch (const mox::DataError&) {
  }
  return 0;
}
