// repeat: passes one after another, each with its own epoch number.
#include <fmt/format.h>

#include <utility>

#include "runtime/base/error.h"
#include "runtime/data/internal/node.h"

namespace mox::data::internal {
namespace {

// The epoch of pass `pass` of a repeat that itself runs in pass `outer` of another: unique for every (outer,
// pass), and simply `pass` where there is no other.
uint64_t inner_epoch(uint64_t outer, uint64_t pass, uint64_t count) {
  return count == kEndless ? (outer << 32) + pass : outer * count + pass;
}

class RepeatIndexed : public Indexed {
 public:
  RepeatIndexed(std::shared_ptr<const Indexed> child, uint64_t count)
      : Indexed(count == kEndless ? kEndless : child->size() * count, child->arity()),
        child_(std::move(child)),
        count_(count) {}

  void resolve(uint64_t epoch, uint64_t first, uint64_t count, Leaf* out, size_t stride) const override {
    const uint64_t size = child_->size();
    while (count > 0) {
      const uint64_t pass = first / size, position = first % size, part = std::min(count, size - position);
      child_->resolve(inner_epoch(epoch, pass, count_), position, part, out, stride);
      first += part;
      count -= part;
      out += part * stride;
    }
  }

 private:
  std::shared_ptr<const Indexed> child_;
  uint64_t count_;
};

class RepeatStream : public Stream {
 public:
  // `is_empty`: no pass gives an element.
  RepeatStream(std::unique_ptr<Stream> child, uint64_t count, bool is_empty, std::string label,
               std::shared_ptr<Execution> execution)
      : Stream(child->arity()),
        child_(std::move(child)),
        count_(count),
        is_empty_(is_empty),
        label_(std::move(label)),
        execution_(std::move(execution)) {}

  void reset(uint64_t epoch) override {
    epoch_ = epoch;
    pass_ = 0;
    in_pass_ = 0;
    child_->reset(inner_epoch(epoch_, pass_, count_));
  }

  bool next(Leaf* out) override {
    for (;;) {
      if (pass_ == count_) return false;
      if (child_->next(out)) {
        ++in_pass_;
        return true;
      }
      if (in_pass_ == 0 && count_ == kEndless)
        throw FailedPrecondition(
            fmt::format("{}: pass {} gave no element at all, so repeating it without end would never give "
                        "one; check that the data is there and that no filter refuses everything",
                        label_, pass_));
      execution_->throw_if_stopped();  // any number of passes may be empty
      pass_ = is_empty_ ? count_ : pass_ + 1;
      in_pass_ = 0;
      if (pass_ != count_) child_->reset(inner_epoch(epoch_, pass_, count_));
    }
  }

  void save(std::vector<uint64_t>* state) const override {
    state->push_back(epoch_);
    state->push_back(pass_);
    state->push_back(in_pass_);
    if (pass_ != count_) child_->save(state);
  }

  void restore(StateReader& state) override {
    epoch_ = state.take();
    pass_ = state.take();
    in_pass_ = state.take();
    if (pass_ != count_) child_->restore(state);
  }

 private:
  std::unique_ptr<Stream> child_;
  uint64_t count_;
  bool is_empty_;
  std::string label_;
  std::shared_ptr<Execution> execution_;
  uint64_t epoch_ = 0, pass_ = 0, in_pass_ = 0;
};

class RepeatNode : public UnaryNode {
 public:
  RepeatNode(NodePtr child, int64_t count, SourceLocation where)
      : UnaryNode(std::move(child), where), count_(count) {
    if (count < 1 && count != Dataset::kInfinite)
      refuse(fmt::format("the number of passes must be at least 1 (or none, for ever), not {}", count));
    if (this->child()->cardinality() == Dataset::kInfinite)
      refuse(fmt::format(
          "the data set below ({}) never ends, so it cannot be repeated; remove one of the two repeats",
          this->child()->label()));
    const Node* selection = count == 1 ? nullptr : this->child()->selection_that_changes();
    if (selection)
      refuse(
          fmt::format("{} stands above a shuffle that gives another order each pass, so every pass would "
                      "select other samples (a training would see those that another part holds back). Use "
                      "split(fraction, seed) to divide the data, shuffle_once to keep one order, or shuffle "
                      "after the selection",
                      selection->label()));
    int64_t total = 0;
    if (count > 0 && this->child()->cardinality() > 0 &&
        __builtin_mul_overflow(this->child()->cardinality(), count, &total))
      refuse(
          fmt::format("{} passes over {} elements are more than fit in 63 bits; use repeat() without a count",
                      count, this->child()->cardinality()));
  }

  std::string describe() const override {
    return count_ == Dataset::kInfinite ? "repeat()" : fmt::format("repeat({})", count_);
  }

  int64_t find_cardinality() const override {
    if (child()->cardinality() == 0) return 0;
    if (count_ == Dataset::kInfinite) return Dataset::kInfinite;
    return child()->cardinality() < 0 ? child()->cardinality() : child()->cardinality() * count_;
  }

  bool find_order_follows_seed() const override { return false; }  // that selections could keep

  Compiled compile(CompileContext& context) const override {
    const bool around = std::exchange(context.one_order, false);  // each pass has an order of its own
    Compiled compiled = child()->compile(context);
    context.one_order = around;
    const uint64_t count = count_ == Dataset::kInfinite ? kEndless : count_;
    if (compiled.indexed && compiled.indexed->size() > 0) {
      compiled.indexed = std::make_shared<RepeatIndexed>(compiled.indexed, count);
      return compiled;
    }
    compiled.stream = std::make_unique<RepeatStream>(compiled.take_stream(), count,
                                                     child()->cardinality() == 0, label(), context.execution);
    compiled.indexed = nullptr;
    return compiled;
  }

 private:
  int64_t count_;
};

}  // namespace

NodePtr make_repeat(NodePtr child, int64_t count, SourceLocation where) {
  return make_node<RepeatNode>(std::move(child), count, where);
}

}  // namespace mox::data::internal
