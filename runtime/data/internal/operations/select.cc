// select: the elements at given positions of a pass.
#include <fmt/format.h>

#include "runtime/base/error.h"
#include "runtime/data/internal/node.h"

namespace mox::data::internal {
namespace {

using Positions = std::shared_ptr<const std::vector<uint64_t>>;

class SelectIndexed : public Indexed {
 public:
  SelectIndexed(std::shared_ptr<const Indexed> child, Positions positions)
      : Indexed(positions->size(), child->arity()),
        child_(std::move(child)),
        positions_(std::move(positions)) {}

  void resolve(uint64_t epoch, uint64_t first, uint64_t count, Leaf* out, size_t stride) const override {
    for (uint64_t i = 0; i < count; ++i)
      child_->resolve(epoch, (*positions_)[first + i], 1, out + i * stride, stride);
  }

 private:
  std::shared_ptr<const Indexed> child_;
  Positions positions_;
};

class SelectStream : public Stream {
 public:
  SelectStream(std::unique_ptr<Stream> child, Positions positions, std::shared_ptr<Execution> execution)
      : Stream(child->arity()),
        child_(std::move(child)),
        positions_(std::move(positions)),
        execution_(std::move(execution)) {}

  void reset(uint64_t epoch) override {
    child_->reset(epoch);
    given_ = 0;
    passed_ = 0;
  }

  bool next(Leaf* out) override {
    if (given_ == positions_->size()) return false;
    do {
      execution_->throw_if_stopped();
      if (!child_->next(out)) return false;
    } while (passed_++ != (*positions_)[given_]);
    ++given_;
    return true;
  }

  void save(std::vector<uint64_t>* state) const override {
    state->push_back(given_);
    state->push_back(passed_);
    child_->save(state);
  }

  void restore(StateReader& state) override {
    given_ = state.take();
    passed_ = state.take();
    child_->restore(state);
  }

 private:
  std::unique_ptr<Stream> child_;
  Positions positions_;
  std::shared_ptr<Execution> execution_;
  uint64_t given_ = 0, passed_ = 0;
};

class SelectNode : public UnaryNode {
 public:
  SelectNode(NodePtr child, std::vector<uint64_t> positions, std::string description, SourceLocation where)
      : UnaryNode(std::move(child), where),
        positions_(std::make_shared<const std::vector<uint64_t>>(std::move(positions))),
        description_(std::move(description)) {}

  std::string describe() const override { return description_; }
  int64_t cardinality() const override { return positions_->size(); }
  int64_t epoch_size() const override { return cardinality(); }

  Compiled compile(CompileContext& context) const override {
    Compiled compiled = child()->compile(context);
    if (compiled.indexed) {
      compiled.indexed = std::make_shared<SelectIndexed>(compiled.indexed, positions_);
      return compiled;
    }
    compiled.stream =
        std::make_unique<SelectStream>(std::move(compiled.stream), positions_, context.execution);
    return compiled;
  }

 private:
  Positions positions_;
  std::string description_;
};

}  // namespace

NodePtr make_select(NodePtr child, std::vector<uint64_t> positions, std::string description,
                    SourceLocation where) {
  return std::make_shared<SelectNode>(std::move(child), std::move(positions), std::move(description), where);
}

}  // namespace mox::data::internal
