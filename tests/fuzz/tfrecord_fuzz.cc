// Any bytes are TFRecords of Examples, or a DataError.
#include <cstdint>

#include "moxing/formats/tf_example.h"
#include "runtime/base/error.h"

namespace {

void read_example(std::span<const std::byte> record) {
  using mox::DType;
  static const std::vector<mox::data::FeatureSpec> specs{
      {.name = "label", .dtype = DType::kInt32, .shape = {}, .default_value = 0},
      {.name = "weights", .dtype = DType::kFloat32, .shape = {2}, .default_value = 0},
      {.name = "pixels", .dtype = DType::kUInt8, .shape = {3}, .default_value = 0}};
  int32_t label;
  float weights[2];
  uint8_t pixels[3];
  std::byte* const out[] = {reinterpret_cast<std::byte*>(&label), reinterpret_cast<std::byte*>(weights),
                            reinterpret_cast<std::byte*>(pixels)};
  try {
    mox::data::parse_example(record, "input");
    mox::data::read_features(record, specs, out, "input");
  } catch (const mox::DataError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  try {
    for (const auto record : mox::data::parse_tfrecords(bytes, "input")) read_example(record);
  } catch (const mox::DataError&) {
  }
  read_example(bytes);  // the checksums of a frame are hard to hit
  return 0;
}
