// The text of image_model.json.
#pragma once

#include <string>

#include "models/zoo/image_model.h"

namespace mox::internal {

// The array_format of a text that says none, as older programs wrote it.
inline constexpr const char* kUnsaidFormat = "?";

std::string json_of_model(const ImageModel& model);

// Throws DataError, naming `path`, for what json_of_model does not write.
ImageModel model_of_json(const std::string& text, const std::string& path);

}  // namespace mox::internal
