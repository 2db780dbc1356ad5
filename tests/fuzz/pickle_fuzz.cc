// Any bytes are a batch of CIFAR's Python version, or a DataError.
#include <cstdint>

#include "moxing/formats/cifar.h"
#include "runtime/base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  for (int classes : {10, 100}) {
    try {
      const auto batch =
          mox::data::parse_cifar_python(std::as_bytes(std::span(data, size)), classes, "input");
      MOX_ASSERT(batch.images.shape()[0] == batch.labels.shape()[0], "each image has a label");
    } catch (const mox::DataError&) {
    }
  }
  return 0;
}
