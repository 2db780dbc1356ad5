#include "moxing/image_sets/internal/image_example.h"

#include <fmt/format.h>

#include "moxing/formats/example_reader.h"
#include "runtime/base/error.h"

namespace mox::data::internal {
namespace {

using Kind = ExampleFeature::Kind;

bool is_one(const std::optional<ExampleFeature>& feature, Kind kind) {
  return feature && feature->kind == kind && feature->count == 1;
}

}  // namespace

ImageExample read_image_example(std::span<const std::byte> record, const std::string& where) {
  std::optional<ExampleFeature> encoded, label, text;
  const bool is_example = for_each_feature(record, [&](const ExampleFeature& feature) {
    if (feature.name == kEncodedFeature) encoded = feature;
    if (feature.name == kLabelFeature) label = feature;
    if (feature.name == kTextFeature) text = feature;
  });
  if (!is_example)
    throw DataError(fmt::format("{}: the {} bytes of this record are no tf.Example", where, record.size()));
  if (!is_one(encoded, Kind::kBytes))
    throw DataError(
        fmt::format("{}: the feature '{}' must be there, and one string of bytes", where, kEncodedFeature));
  if (!is_one(label, Kind::kIntegers))
    throw DataError(fmt::format("{}: the feature '{}' must be there, and one integer", where, kLabelFeature));
  ImageExample result;
  encoded->for_each_bytes([&](std::string_view value) { result.encoded = std::as_bytes(std::span(value)); });
  label->for_each_integer([&](int64_t value) { result.label = value; });
  if (is_one(text, Kind::kBytes)) text->for_each_bytes([&](std::string_view value) { result.text = value; });
  return result;
}

}  // namespace mox::data::internal
