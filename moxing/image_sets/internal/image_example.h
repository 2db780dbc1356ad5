// What a record of an image says: a tf.Example with the features that the models of TensorFlow use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace mox::data::internal {

inline constexpr const char* kEncodedFeature = "image/encoded";
inline constexpr const char* kLabelFeature = "image/class/label";
inline constexpr const char* kTextFeature = "image/class/text";

// Views of the record.
struct ImageExample {
  std::span<const std::byte> encoded;
  int64_t label = 0;
  std::optional<std::string_view> text;  // what the class is called, where the record says one name
};

// Takes no memory, whatever else the record holds. Throws DataError, starting with `where`, if the bytes are
// no tf.Example or lack the image or its label.
ImageExample read_image_example(std::span<const std::byte> record, const std::string& where);

}  // namespace mox::data::internal
