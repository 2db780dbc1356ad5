// Arrays in memory as a source: a row of the first axis is a sample.
#include <fmt/format.h>

#include <cstring>

#include "runtime/base/error.h"
#include "runtime/data/internal/node.h"

namespace mox::data::internal {
namespace {

class ArraySource : public RandomAccessSource {
 public:
  explicit ArraySource(std::vector<Array> arrays) : arrays_(std::move(arrays)) {
    for (const auto& array : arrays_) {
      const auto dims = array.shape().dims();
      signature_.push_back({array.dtype(), Shape(std::vector<int64_t>(dims.begin() + 1, dims.end()))});
      row_bytes_.push_back(signature_.back().bytes());
    }
  }

  int64_t size() const override { return arrays_[0].shape()[0]; }
  const std::vector<TensorType>& signature() const override { return signature_; }

  void read(int64_t index, const SampleContext&, std::span<std::byte* const> components) const override {
    for (size_t c = 0; c < arrays_.size(); ++c)
      if (row_bytes_[c] != 0)
        std::memcpy(components[c], arrays_[c].data() + index * row_bytes_[c], row_bytes_[c]);
  }

  void will_read(int64_t index) const override {
    // The hardware follows a row once its first lines are on their way.
    constexpr size_t kLine = 64, kLinesAhead = 8;
    for (size_t c = 0; c < arrays_.size(); ++c) {
      const std::byte* row = arrays_[c].data() + index * row_bytes_[c];
      for (size_t at = 0; at < std::min(row_bytes_[c], kLine * kLinesAhead); at += kLine)
        __builtin_prefetch(row + at);
    }
  }

  bool view(int64_t first, int64_t count, std::vector<Array>* rows) const override {
    for (const auto& array : arrays_) rows->push_back(array.rows(first, first + count));
    return true;
  }

  std::string describe() const override { return fmt::format("from_arrays({})", size()); }

 private:
  std::vector<Array> arrays_;
  std::vector<TensorType> signature_;
  std::vector<size_t> row_bytes_;
};

}  // namespace

NodePtr make_arrays(std::vector<Array> arrays, SourceLocation where) {
  const auto refuse = [&](const std::string& text) {
    throw InvalidArgument(fmt::format("from_arrays ({}): {}", to_string(where), text));
  };
  if (arrays.empty()) refuse("at least one array is needed, none was given");
  for (size_t c = 0; c < arrays.size(); ++c) {
    if (!arrays[c].defined()) refuse(fmt::format("array {} is undefined", c));
    if (arrays[c].shape().rank() == 0)
      refuse(fmt::format("array {} is a scalar; the first axis of each array counts the samples", c));
    if (arrays[c].shape()[0] != arrays[0].shape()[0])
      refuse(fmt::format(
          "the first axis counts the samples and must be the same in all arrays: array 0 is {}, array "
          "{} is {}",
          to_string(arrays[0].type()), c, to_string(arrays[c].type())));
  }
  return make_source(std::make_shared<ArraySource>(std::move(arrays)), where);
}

}  // namespace mox::data::internal
