#include "runtime/graph/tensor.h"

#include <fmt/format.h>

#include "runtime/base/error.h"
#include "runtime/graph/graph.h"

namespace mox {

const TensorType& Tensor::type() const {
  if (!node_) throw InvalidArgument("an undefined tensor has no type");
  return node_->outputs[index_];
}

std::string Tensor::name() const {
  if (!node_) return "<undefined>";
  return index_ == 0 ? node_->name : fmt::format("{}:{}", node_->name, index_);
}

const SourceLocation& Tensor::where() const {
  if (!node_) throw InvalidArgument("an undefined tensor was made nowhere");
  return node_->where;
}

Tensor Tensor::named(std::string_view name) const {
  if (!node_) throw InvalidArgument(fmt::format("an undefined tensor cannot be named '{}'", name));
  node_->name = node_->graph->unique_name(current_name_scope() + std::string(name));
  return *this;
}

std::string to_string(const Tensor& tensor) {
  return tensor.defined() ? fmt::format("{}: {}", tensor.name(), to_string(tensor.type())) : "<undefined>";
}

}  // namespace mox
