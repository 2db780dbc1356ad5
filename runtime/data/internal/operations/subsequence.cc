// shard, take, skip and select: a subsequence of the elements, by their positions in a pass.
#include <fmt/format.h>

#include "runtime/base/error.h"
#include "runtime/data/internal/node.h"

namespace mox::data::internal {
namespace {

// The positions that are kept, ascending: first, first + step, ... (`count` of them), or those of a list.
struct Kept {
  uint64_t first = 0, step = 1, count = kEndless;
  std::shared_ptr<const std::vector<uint64_t>> list = nullptr;

  uint64_t position(uint64_t i) const { return list ? (*list)[i] : first + i * step; }
  bool is_a_run() const { return !list && step == 1; }
  bool is_all() const { return is_a_run() && first == 0 && count == kEndless; }

  // How many of `size` elements it keeps.
  uint64_t of(uint64_t size) const {
    if (list || size == kEndless) return count;
    return size <= first ? 0 : std::min(count, (size - first - 1) / step + 1);
  }
};

class SubsequenceIndexed : public Indexed {
 public:
  SubsequenceIndexed(std::shared_ptr<const Indexed> child, Kept kept)
      : Indexed(kept.of(child->size()), child->arity()), child_(std::move(child)), kept_(std::move(kept)) {}

  void resolve(uint64_t epoch, uint64_t first, uint64_t count, Leaf* out, size_t stride) const override {
    if (kept_.is_a_run()) return child_->resolve(epoch, kept_.position(first), count, out, stride);
    for (uint64_t i = 0; i < count; ++i)
      child_->resolve(epoch, kept_.position(first + i), 1, out + i * stride, stride);
  }

 private:
  std::shared_ptr<const Indexed> child_;
  Kept kept_;
};

class SubsequenceStream : public Stream {
 public:
  SubsequenceStream(std::unique_ptr<Stream> child, Kept kept, std::shared_ptr<Execution> execution)
      : Stream(child->arity()),
        child_(std::move(child)),
        kept_(std::move(kept)),
        execution_(std::move(execution)) {}

  void reset(uint64_t epoch) override {
    child_->reset(epoch);
    given_ = 0;
    passed_ = 0;
  }

  bool next(Leaf* out) override {
    if (given_ == kept_.count) return false;
    const uint64_t wanted = kept_.position(given_);
    do {
      execution_->throw_if_stopped();
      if (!child_->next(out)) return false;
    } while (passed_++ != wanted);
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
  Kept kept_;
  std::shared_ptr<Execution> execution_;
  uint64_t given_ = 0, passed_ = 0;
};

class SubsequenceNode : public UnaryNode {
 public:
  SubsequenceNode(NodePtr child, Kept kept, std::string description, SourceLocation where)
      : UnaryNode(std::move(child), where), kept_(std::move(kept)), description_(std::move(description)) {}

  // A saved position counts on the order that the selection sees.
  std::string describe() const override { return description_ + (fixes_order() ? " of one order" : ""); }

  const Node* find_selection_that_changes() const override {
    return selects() && child()->order_changes() ? this : child()->selection_that_changes();
  }

  int64_t find_cardinality() const override {
    const int64_t below = child()->cardinality();
    if (below == Dataset::kUnknown) return kept_.count == 0 ? 0 : Dataset::kUnknown;
    const uint64_t kept = kept_.of(below == Dataset::kInfinite ? kEndless : below);
    return kept == kEndless ? Dataset::kInfinite : static_cast<int64_t>(kept);
  }

  // Above a repeat the passes are no longer whole, except that dropping a start of endless data, or all but a
  // start, leaves the length of a pass as it is.
  int64_t find_epoch_size() const override {
    const int64_t below = child()->epoch_size(), total = cardinality();
    if (kept_.list) return total;
    if (below == Dataset::kUnknown) return kept_.step == 1 && total >= 0 ? total : Dataset::kUnknown;
    if (child()->cardinality() == below) return total;
    if (kept_.step == 1) return total < 0 ? below : std::min(below, total);
    return below % static_cast<int64_t>(kept_.step) == 0 ? below / static_cast<int64_t>(kept_.step)
                                                         : Dataset::kUnknown;
  }

  // What `take` keeps and `skip` leaves must not meet, in whichever run and with whichever seed each is used,
  // and wherever each stands: a shuffle below has one order.
  Compiled compile(CompileContext& context) const override {
    const bool one_order_around = context.one_order;
    const uint64_t part_around = context.part;
    if (fixes_order()) {
      context.one_order = true;
      context.part = 0;
    }
    Compiled compiled = child()->compile(context);
    context.one_order = one_order_around;
    context.part = part_around;
    if (compiled.indexed) {
      compiled.indexed = std::make_shared<SubsequenceIndexed>(compiled.indexed, kept_);
      return compiled;
    }
    compiled.stream =
        std::make_unique<SubsequenceStream>(std::move(compiled.stream), kept_, context.execution);
    return compiled;
  }

 protected:
  bool fixes_order() const override { return selects() && child()->order_follows_seed(); }

 private:
  bool selects() const {
    const int64_t below = child()->cardinality();
    return !kept_.is_all() && !(kept_.is_a_run() && kept_.first == 0 && below >= 0 && cardinality() == below);
  }

  Kept kept_;
  std::string description_;
};

[[noreturn]] void refuse(const char* name, SourceLocation where, const std::string& text) {
  throw InvalidArgument(fmt::format("{} ({}): {}", name, to_string(where), text));
}

NodePtr make_regular(NodePtr child, Kept kept, std::string description, SourceLocation where) {
  return make_node<SubsequenceNode>(std::move(child), std::move(kept), std::move(description), where);
}

}  // namespace

NodePtr make_shard(NodePtr child, int64_t index, int64_t count, SourceLocation where) {
  if (count < 1)
    refuse("shard", where, fmt::format("the number of shards must be at least 1, not {}", count));
  if (index < 0 || index >= count)
    refuse("shard", where, fmt::format("the index must be in [0, {}), it is {}", count, index));
  return make_regular(std::move(child),
                      {.first = static_cast<uint64_t>(index), .step = static_cast<uint64_t>(count)},
                      fmt::format("shard({}, {})", index, count), where);
}

NodePtr make_take(NodePtr child, int64_t count, SourceLocation where) {
  if (count < 0)
    refuse("take", where, fmt::format("the number of elements must not be negative, it is {}", count));
  return make_regular(std::move(child), {.count = static_cast<uint64_t>(count)},
                      fmt::format("take({})", count), where);
}

NodePtr make_skip(NodePtr child, int64_t count, SourceLocation where) {
  if (count < 0)
    refuse("skip", where, fmt::format("the number of elements must not be negative, it is {}", count));
  return make_regular(std::move(child), {.first = static_cast<uint64_t>(count)},
                      fmt::format("skip({})", count), where);
}

NodePtr make_select(NodePtr child, std::vector<uint64_t> positions, std::string description,
                    SourceLocation where) {
  const uint64_t count = positions.size();
  return make_regular(
      std::move(child),
      {.count = count, .list = std::make_shared<const std::vector<uint64_t>>(std::move(positions))},
      std::move(description), where);
}

}  // namespace mox::data::internal
