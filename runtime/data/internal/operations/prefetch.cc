// prefetch: no operation on the data; it asks the pipeline to run further ahead.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/data/internal/node.h"

namespace mox::data::internal {
namespace {

class PrefetchNode : public UnaryNode {
 public:
  PrefetchNode(NodePtr child, int64_t count, SourceLocation where)
      : UnaryNode(std::move(child), where), count_(count) {
    if (count < 0) refuse(fmt::format("the number of elements must not be negative, it is {}", count));
  }

  std::string describe() const override { return fmt::format("prefetch({})", count_); }
  bool is_stage() const override { return false; }
  int64_t find_requested_prefetch() const override { return std::max(count_, child()->requested_prefetch()); }
  Compiled compile(CompileContext& context) const override { return child()->compile(context); }

 private:
  int64_t count_;
};

}  // namespace

NodePtr make_prefetch(NodePtr child, int64_t count, SourceLocation where) {
  return make_node<PrefetchNode>(std::move(child), count, where);
}

}  // namespace mox::data::internal
