// Any bytes are the image_model.json beside a checkpoint, which comes back as it was written, or a DataError
// names it.
#include <cstdint>
#include <string>

#include "models/zoo/internal/image_model_json.h"
#include "runtime/base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const mox::ImageModel model = mox::internal::model_of_json(
        std::string(reinterpret_cast<const char*>(data), size), "image_model.json");
    MOX_ASSERT(model.image_size >= 0 && model.image_size <= 1 << 16, "images have a size");
  } catch (const mox::DataError& error) {
    MOX_ASSERT(std::string(error.what()).find("image_model.json") != std::string::npos, "the file is named");
  }
  return 0;
}
