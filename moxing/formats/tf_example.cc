#include "moxing/formats/tf_example.h"

#include <example.pb.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "runtime/base/error.h"

namespace mox::data {
namespace {

wire::Example parse(std::span<const std::byte> record, const std::string& where) {
  wire::Example example;
  if (record.size() > std::numeric_limits<int>::max() ||
      !example.ParseFromArray(record.data(), static_cast<int>(record.size())))
    throw DataError(fmt::format("{}: the {} bytes of this record are no tf.Example", where, record.size()));
  return example;
}

std::string_view kind_name(const wire::Feature& feature) {
  switch (feature.kind_case()) {
    case wire::Feature::kBytesList:
      return "bytes";
    case wire::Feature::kFloatList:
      return "floats";
    case wire::Feature::kInt64List:
      return "integers";
    default:
      return "nothing";
  }
}

// The names that there are, for an error about one that is not.
std::string names_in(const wire::Example& example) {
  std::vector<std::string> names;
  for (const auto& [name, feature] : example.features().feature()) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names.empty() ? "it has no features" : fmt::format("it has {}", fmt::join(names, ", "));
}

class FeatureReader {
 public:
  FeatureReader(const FeatureSpec& spec, const std::string& where) : spec_(spec), where_(where) {}

  void read(const wire::Example& example, std::byte* out) const {
    const auto found = example.features().feature().find(spec_.name);
    if (found == example.features().feature().end() || found->second.kind_case() == 0) {
      if (!spec_.default_value) fail(fmt::format("is missing; {}", names_in(example)));
      fill(*spec_.default_value, out);
      return;
    }
    const wire::Feature& feature = found->second;
    switch (spec_.dtype) {
      case DType::kFloat32:
        if (!feature.has_float_list()) refuse_kind(feature, "floats");
        copy(feature.float_list().value(), reinterpret_cast<float*>(out));
        break;
      case DType::kInt64:
        if (!feature.has_int64_list()) refuse_kind(feature, "integers");
        copy(feature.int64_list().value(), reinterpret_cast<int64_t*>(out));
        break;
      case DType::kInt32:
        if (!feature.has_int64_list()) refuse_kind(feature, "integers");
        for (int64_t value : feature.int64_list().value())
          if (value < std::numeric_limits<int32_t>::min() || value > std::numeric_limits<int32_t>::max())
            fail(fmt::format("holds {}, which does not fit into int32; ask for int64", value));
        copy(feature.int64_list().value(), reinterpret_cast<int32_t*>(out));
        break;
      default:
        if (!feature.has_bytes_list()) refuse_kind(feature, "bytes");
        copy_bytes(feature.bytes_list(), out);
    }
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw DataError(fmt::format("{}: feature '{}' {}", where_, spec_.name, what));
  }

  [[noreturn]] void refuse_kind(const wire::Feature& feature, std::string_view expected) const {
    fail(fmt::format("is a list of {}; {} are expected for {}", kind_name(feature), expected,
                     to_string(spec_.dtype)));
  }

  void require_count(size_t given, std::string_view unit) const {
    const size_t expected = spec_.shape.elements();
    if (given != expected)
      fail(fmt::format("has {} {}; the shape {} takes {}", given, unit, to_string(spec_.shape), expected));
  }

  template <typename List, typename T>
  void copy(const List& values, T* out) const {
    require_count(values.size(), "values");
    std::transform(values.begin(), values.end(), out, [](auto value) { return static_cast<T>(value); });
  }

  void copy_bytes(const wire::BytesList& list, std::byte* out) const {
    if (list.value_size() != 1) fail(fmt::format("has {} strings; one is expected", list.value_size()));
    const std::string& value = list.value(0);
    require_count(value.size(), "bytes");
    if (!value.empty()) std::memcpy(out, value.data(), value.size());
  }

  void fill(double value, std::byte* out) const {
    const size_t count = spec_.shape.elements();
    switch (spec_.dtype) {
      case DType::kFloat32:
        std::fill_n(reinterpret_cast<float*>(out), count, static_cast<float>(value));
        break;
      case DType::kInt64:
        std::fill_n(reinterpret_cast<int64_t*>(out), count, static_cast<int64_t>(value));
        break;
      case DType::kInt32:
        std::fill_n(reinterpret_cast<int32_t*>(out), count, static_cast<int32_t>(value));
        break;
      default:
        std::fill_n(reinterpret_cast<uint8_t*>(out), count, static_cast<uint8_t>(value));
    }
  }

  const FeatureSpec& spec_;
  const std::string& where_;
};

class ExampleSource : public RandomAccessSource {
 public:
  ExampleSource(std::shared_ptr<const TfRecordFiles> files, std::vector<FeatureSpec> specs)
      : files_(std::move(files)), specs_(std::move(specs)) {
    for (const FeatureSpec& spec : specs_) signature_.push_back({spec.dtype, spec.shape});
  }
  int64_t size() const override { return files_->size(); }
  const std::vector<TensorType>& signature() const override { return signature_; }
  void read(int64_t index, const SampleContext&, std::span<std::byte* const> components) const override {
    thread_local RecordBuffer buffer;
    read_features(files_->read(index, &buffer), specs_, components, files_->locate(index));
  }
  void will_read(int64_t index) const override { files_->will_read(index); }
  std::string describe() const override { return files_->describe(); }

 private:
  std::shared_ptr<const TfRecordFiles> files_;
  std::vector<FeatureSpec> specs_;
  std::vector<TensorType> signature_;
};

// Whether a default can be a value of the dtype: conversions out of range are undefined.
bool representable(double value, DType dtype) {
  const auto whole_between = [value](double low, double high) {
    return value >= low && value <= high && value == std::trunc(value);
  };
  switch (dtype) {
    case DType::kFloat32:
      return true;
    case DType::kInt64:
      return whole_between(-0x1p53, 0x1p53);
    case DType::kInt32:
      return whole_between(-0x1p31, 0x1p31 - 1);
    default:
      return whole_between(0, 255);
  }
}

}  // namespace

Example parse_example(std::span<const std::byte> record, const std::string& where) {
  Example result;
  const wire::Example example = parse(record, where);
  for (const auto& [name, feature] : example.features().feature()) {
    switch (feature.kind_case()) {
      case wire::Feature::kFloatList: {
        const auto& values = feature.float_list().value();
        result[name] = std::vector<float>(values.begin(), values.end());
        break;
      }
      case wire::Feature::kInt64List: {
        const auto& values = feature.int64_list().value();
        result[name] = std::vector<int64_t>(values.begin(), values.end());
        break;
      }
      default: {
        const auto& values = feature.bytes_list().value();
        result[name] = std::vector<std::string>(values.begin(), values.end());
      }
    }
  }
  return result;
}

std::string serialize_example(const Example& example) {
  wire::Example message;
  auto& features = *message.mutable_features()->mutable_feature();
  for (const auto& [name, value] : example) {
    wire::Feature& feature = features[name];
    if (const auto* strings = std::get_if<std::vector<std::string>>(&value)) {
      for (const std::string& text : *strings) feature.mutable_bytes_list()->add_value(text);
    } else if (const auto* floats = std::get_if<std::vector<float>>(&value)) {
      feature.mutable_float_list()->mutable_value()->Assign(floats->begin(), floats->end());
    } else {
      const auto& integers = std::get<std::vector<int64_t>>(value);
      feature.mutable_int64_list()->mutable_value()->Assign(integers.begin(), integers.end());
    }
  }
  return message.SerializeAsString();
}

void read_features(std::span<const std::byte> record, std::span<const FeatureSpec> specs,
                   std::span<std::byte* const> components, const std::string& where) {
  const wire::Example example = parse(record, where);
  for (size_t i = 0; i < specs.size(); ++i) FeatureReader(specs[i], where).read(example, components[i]);
}

Dataset tf_examples(const std::string& patterns, std::vector<FeatureSpec> specs,
                    const TfRecordOptions& options, SourceLocation where) {
  if (specs.empty())
    throw InvalidArgument(fmt::format("tf_examples ({}): no features are asked for", to_string(where)));
  for (const FeatureSpec& spec : specs) {
    if (spec.dtype != DType::kFloat32 && spec.dtype != DType::kInt64 && spec.dtype != DType::kInt32 &&
        spec.dtype != DType::kUInt8)
      throw InvalidArgument(
          fmt::format("tf_examples ({}): feature '{}' cannot be {}; expected float32, int32, int64 or uint8",
                      to_string(where), spec.name, to_string(spec.dtype)));
    if (spec.default_value && !representable(*spec.default_value, spec.dtype))
      throw InvalidArgument(fmt::format("tf_examples ({}): feature '{}' is {} and cannot have the default {}",
                                        to_string(where), spec.name, to_string(spec.dtype),
                                        *spec.default_value));
  }
  auto files = TfRecordFiles::open(match_files(patterns), options);
  return Dataset::from_source(std::make_shared<ExampleSource>(std::move(files), std::move(specs)), where);
}

}  // namespace mox::data
