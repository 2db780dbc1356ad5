#include "ops/support/indices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/graph/op.h"

namespace mox::internal {
namespace {

template <typename T>
bool all_in_range(const std::byte* data, int64_t count, int64_t bound) {
  const T* indices = reinterpret_cast<const T*>(data);
  T lowest = 0, highest = 0;
  for (int64_t i = 0; i < count; ++i) {
    lowest = std::min(lowest, indices[i]);
    highest = std::max(highest, indices[i]);
  }
  return count == 0 || (lowest >= 0 && static_cast<int64_t>(highest) < bound);
}

}  // namespace

std::string node_and_place(const Node& node) {
  return fmt::format("{} '{}' at {}", node.op->name, node.name, to_string(node.where));
}

IndexCheck::IndexCheck(const Node& node, int input, int64_t bound, std::string index_name,
                       std::string bound_name)
    : node_(node_and_place(node)),
      input_(input),
      type_(node.inputs[input].type()),
      count_(type_.shape.elements()),
      bound_(bound),
      index_name_(std::move(index_name)),
      bound_name_(std::move(bound_name)) {}

IndexReader IndexCheck::checked(const KernelArguments& args) const {
  const std::byte* data = args.inputs[input_];
  const IndexReader indices(data, type_.dtype);
  const bool valid = type_.dtype == DType::kInt64 ? all_in_range<int64_t>(data, count_, bound_)
                                                  : all_in_range<int32_t>(data, count_, bound_);
  if (!valid) [[unlikely]]
    fail(indices);
  return indices;
}

void IndexCheck::fail(const IndexReader& indices) const {
  int64_t at = 0;
  while (indices[at] >= 0 && indices[at] < bound_) ++at;
  std::vector<int64_t> position;
  int64_t rest = at;
  for (int axis = type_.shape.rank() - 1; axis >= 0; --axis) {
    position.insert(position.begin(), rest % type_.shape[axis]);
    rest /= type_.shape[axis];
  }
  throw InvalidArgument(fmt::format(
      "{}: expected every {} in [0, {}), as there are {} {}; the {} at position [{}] is {}", node_,
      index_name_, bound_, bound_, bound_name_, index_name_, fmt::join(position, ", "), indices[at]));
}

}  // namespace mox::internal
