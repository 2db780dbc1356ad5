#include "moxing/formats/tf_example.h"

#include <example.pb.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "moxing/formats/example_reader.h"
#include "runtime/base/error.h"

namespace mox::data {
namespace {

using internal::ExampleFeature;
using FeatureKind = ExampleFeature::Kind;

void for_each_feature(std::span<const std::byte> record, const std::string& where,
                      FunctionRef<void(const ExampleFeature&)> take) {
  if (!internal::for_each_feature(record, take))
    throw DataError(fmt::format("{}: the {} bytes of this record are no tf.Example", where, record.size()));
}

std::string_view kind_name(FeatureKind kind) {
  switch (kind) {
    case FeatureKind::kBytes:
      return "bytes";
    case FeatureKind::kFloats:
      return "floats";
    case FeatureKind::kIntegers:
      return "integers";
    default:
      return "nothing";
  }
}

// The names that there are, for an error about one that is not.
std::string names_in(std::span<const std::byte> record, const std::string& where) {
  std::set<std::string> names;
  for_each_feature(record, where, [&](const ExampleFeature& feature) { names.emplace(feature.name); });
  return names.empty() ? "it has no features" : fmt::format("it has {}", fmt::join(names, ", "));
}

class FeatureReader {
 public:
  FeatureReader(const FeatureSpec& spec, const std::string& where) : spec_(spec), where_(where) {}

  // `feature` is nothing where the record has none of the name.
  void read(std::span<const std::byte> record, const std::optional<ExampleFeature>& feature,
            std::byte* out) const {
    if (!feature || feature->kind == FeatureKind::kNothing) {
      if (!spec_.default_value) fail(fmt::format("is missing; {}", names_in(record, where_)));
      fill(*spec_.default_value, out);
      return;
    }
    switch (spec_.dtype) {
      case DType::kFloat32: {
        require(*feature, FeatureKind::kFloats);
        auto* to = reinterpret_cast<float*>(out);
        feature->for_each_float([&](float value) { *to++ = value; });
        break;
      }
      case DType::kInt64: {
        require(*feature, FeatureKind::kIntegers);
        auto* to = reinterpret_cast<int64_t*>(out);
        feature->for_each_integer([&](int64_t value) { *to++ = value; });
        break;
      }
      case DType::kInt32: {
        require_kind(*feature, FeatureKind::kIntegers);
        feature->for_each_integer([&](int64_t value) {
          if (!std::in_range<int32_t>(value))
            fail(fmt::format("holds {}, which does not fit into int32; ask for int64", value));
        });
        require_count(feature->count, "values");
        auto* to = reinterpret_cast<int32_t*>(out);
        feature->for_each_integer([&](int64_t value) { *to++ = static_cast<int32_t>(value); });
        break;
      }
      default:
        require_kind(*feature, FeatureKind::kBytes);
        if (feature->count != 1) fail(fmt::format("has {} strings; one is expected", feature->count));
        feature->for_each_bytes([&](std::string_view value) {
          require_count(value.size(), "bytes");
          std::ranges::copy(std::as_bytes(std::span(value)), out);
        });
    }
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw DataError(fmt::format("{}: feature '{}' {}", where_, spec_.name, what));
  }

  void require_kind(const ExampleFeature& feature, FeatureKind expected) const {
    if (feature.kind != expected)
      fail(fmt::format("is a list of {}; {} are expected for {}", kind_name(feature.kind),
                       kind_name(expected), to_string(spec_.dtype)));
  }

  void require(const ExampleFeature& feature, FeatureKind expected) const {
    require_kind(feature, expected);
    require_count(feature.count, "values");
  }

  void require_count(size_t given, std::string_view unit) const {
    const size_t expected = spec_.shape.elements();
    if (given != expected)
      fail(fmt::format("has {} {}; the shape {} takes {}", given, unit, to_string(spec_.shape), expected));
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
  for_each_feature(record, where, [&](const ExampleFeature& feature) {
    FeatureValue& value = result[std::string(feature.name)];
    switch (feature.kind) {
      case FeatureKind::kFloats: {
        auto& floats = value.emplace<std::vector<float>>();
        floats.reserve(feature.count);
        feature.for_each_float([&](float number) { floats.push_back(number); });
        break;
      }
      case FeatureKind::kIntegers: {
        auto& integers = value.emplace<std::vector<int64_t>>();
        integers.reserve(feature.count);
        feature.for_each_integer([&](int64_t number) { integers.push_back(number); });
        break;
      }
      default: {
        auto& texts = value.emplace<std::vector<std::string>>();
        texts.reserve(feature.count);
        feature.for_each_bytes([&](std::string_view text) { texts.emplace_back(text); });
      }
    }
  });
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
  std::vector<std::optional<ExampleFeature>> found(specs.size());
  for_each_feature(record, where, [&](const ExampleFeature& feature) {
    for (size_t i = 0; i < specs.size(); ++i)
      if (specs[i].name == feature.name) found[i] = feature;
  });
  for (size_t i = 0; i < specs.size(); ++i)
    FeatureReader(specs[i], where).read(record, found[i], components[i]);
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
