// Integer inputs that address something: reading them whatever their width, and refusing those out of range.
#pragma once

#include <string>

#include "runtime/graph/kernel.h"

namespace mox::internal {

// The int32 or int64 elements of an input, as int64.
class IndexReader {
 public:
  IndexReader(const std::byte* data, DType dtype) : data_(data), wide_(dtype == DType::kInt64) {}
  int64_t operator[](int64_t i) const {
    return wide_ ? reinterpret_cast<const int64_t*>(data_)[i] : reinterpret_cast<const int32_t*>(data_)[i];
  }

 private:
  const std::byte* data_;
  bool wide_;
};

// Knows how to complain about an index: made when the kernel is compiled, so that a run allocates nothing
// unless it fails.
class IndexCheck {
 public:
  // Input `input` of `node` addresses `bound` things. `index_name` and `bound_name` are words for the message
  // ("label", "classes").
  IndexCheck(const Node& node, int input, int64_t bound, std::string index_name, std::string bound_name);

  // The input's elements. Throws InvalidArgument naming node, place in the user's program, the first index
  // outside [0, bound), its position and the bound. Runs on the calling thread, before any team is at work.
  IndexReader checked(const KernelArguments& args) const;

 private:
  [[noreturn]] void fail(const IndexReader& indices) const;

  std::string node_;  // "gather 'embed/gather' at model.cc:12"
  int input_;
  TensorType type_;
  int64_t count_, bound_;
  std::string index_name_, bound_name_;
};

// "gather 'embed/gather' at model.cc:12": how messages at run time name a node.
std::string node_and_place(const Node& node);

}  // namespace mox::internal
