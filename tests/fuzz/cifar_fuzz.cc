// Any bytes are a batch of CIFAR's binary version, or a DataError.
#include <cstdint>

#include "moxing/formats/cifar.h"
#include "runtime/base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  for (int classes : {10, 100}) {
    try {
      const auto batch =
          mox::data::parse_cifar_binary(std::as_bytes(std::span(data, size)), classes, "input");
      MOX_ASSERT(batch.images.bytes() <= size, "the pixels come from the input");
      for (int32_t label : batch.labels.values<int32_t>())
        MOX_ASSERT(label >= 0 && label < classes, "labels are in range");
    } catch (const mox::DataError&) {
    }
  }
  return 0;
}
