#include "runtime/data/internal/element_evaluator.h"

#include <fmt/format.h>

#include <cstring>

#include "runtime/base/error.h"

namespace mox::data::internal {
namespace {

bool fits(const TensorType& expected, const TensorType& given, bool rows_vary) {
  if (!rows_vary) return expected == given;
  return expected.shape.rank() > 0 && given.shape.rank() > 0 && given.shape[0] <= expected.shape[0] &&
         with_rows(expected, given.shape[0]) == given;
}

}  // namespace

size_t bytes_of(const ElementType& type) {
  size_t bytes = 0;
  for (const TensorType& component : type.components) bytes += component.bytes();
  return bytes;
}

void ElementEvaluator::write(const Leaf* leaves, std::span<std::byte* const> destinations) const {
  const Element element = make(leaves);
  for (size_t c = 0; c < element.size(); ++c) {
    if (element[c].type() != type_.components[c])
      throw InvalidArgument(fmt::format(
          "cannot stack {} among elements of {}: batches with fewer rows than the others cannot be batched "
          "again; give the inner batch drop_remainder = true",
          to_string(element[c].type()), to_string(type_.components[c])));
    if (element[c].bytes() != 0) std::memcpy(destinations[c], element[c].data(), element[c].bytes());
  }
}

void check_element(const ElementType& type, const Element& element, const std::string& producer) {
  if (element.size() != type.components.size())
    throw InvalidArgument(fmt::format("{} gave {} components, expected {}: {}", producer, element.size(),
                                      type.components.size(), types_text(type.components)));
  for (size_t c = 0; c < element.size(); ++c) {
    if (!element[c].defined())
      throw InvalidArgument(fmt::format("{} gave an undefined array as component {}, expected {}", producer,
                                        c, to_string(type.components[c])));
    if (!fits(type.components[c], element[c].type(), type.rows_vary))
      throw InvalidArgument(fmt::format("{} gave {} as component {}, expected {}{}", producer,
                                        to_string(element[c].type()), c, to_string(type.components[c]),
                                        type.rows_vary ? " or fewer rows" : ""));
  }
}

TensorType stacked(const TensorType& type, int64_t rows) {
  std::vector<int64_t> dims{rows};
  dims.insert(dims.end(), type.shape.begin(), type.shape.end());
  return {type.dtype, Shape(std::move(dims))};
}

TensorType with_rows(const TensorType& type, int64_t rows) {
  std::vector<int64_t> dims(type.shape.begin(), type.shape.end());
  dims[0] = rows;
  return {type.dtype, Shape(std::move(dims))};
}

std::string types_text(const std::vector<TensorType>& signature) {
  std::string text;
  for (const auto& type : signature) text += (text.empty() ? "" : ", ") + to_string(type);
  return "{" + text + "}";
}

}  // namespace mox::data::internal
