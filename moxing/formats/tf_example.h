// tf.Example: the usual content of TFRecord files, a map from names to lists of bytes, floats or 64-bit
// integers (https://www.tensorflow.org/tutorials/load_data/tfrecord, "tf.train.Example").
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "moxing/formats/tfrecord.h"
#include "runtime/base/source_location.h"
#include "runtime/data/dataset.h"

namespace mox::data {

// What is taken from each Example: one feature, as one component.
struct FeatureSpec {
  std::string name;

  // float32 from a list of floats; int64 or int32 from a list of integers (out of int32's range is an error);
  // uint8 from one string of bytes, as they are.
  DType dtype = DType::kFloat32;

  // As many elements as the list has, or bytes as the string has.
  Shape shape;

  // All elements have this value in Examples without the feature; without it, such an Example is an error.
  std::optional<double> default_value = std::nullopt;
};

// A whole Example.
using FeatureValue = std::variant<std::vector<std::string>, std::vector<float>, std::vector<int64_t>>;
using Example = std::map<std::string, FeatureValue>;

// Throws DataError, starting with `where`, if the bytes are no Example.
Example parse_example(std::span<const std::byte> record, const std::string& where);
std::string serialize_example(const Example& example);

// Writes the features of one Example to components[i], specs[i]'s bytes each. Throws DataError, starting with
// `where` and naming the feature, for a missing one (see default_value), one of another kind or length.
void read_features(std::span<const std::byte> record, std::span<const FeatureSpec> specs,
                   std::span<std::byte* const> components, const std::string& where);

// The Examples of the files that match `patterns` (see match_files): an element has one component for each of
// `specs`. Throws as TfRecordFiles::open, InvalidArgument for specs that are empty or of another dtype.
Dataset tf_examples(const std::string& patterns, std::vector<FeatureSpec> specs,
                    const TfRecordOptions& options = {}, SourceLocation where = SourceLocation::current());

}  // namespace mox::data
