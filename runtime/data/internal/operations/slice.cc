// shard, take and skip: a regular subsequence of the elements, described by (first, step, count).
#include <fmt/format.h>

#include "runtime/base/error.h"
#include "runtime/data/internal/node.h"

namespace mox::data::internal {
namespace {

struct Slice {
  uint64_t first = 0, step = 1, count = kEndless;
  bool operator==(const Slice&) const = default;

  // How many of `size` elements it keeps.
  uint64_t kept(uint64_t size) const {
    if (size == kEndless) return count;
    return size <= first ? 0 : std::min(count, (size - first - 1) / step + 1);
  }
};

class SliceIndexed : public Indexed {
 public:
  SliceIndexed(std::shared_ptr<const Indexed> child, Slice slice)
      : Indexed(slice.kept(child->size()), child->arity()), child_(std::move(child)), slice_(slice) {}

  void resolve(uint64_t epoch, uint64_t first, uint64_t count, Leaf* out, size_t stride) const override {
    if (slice_.step == 1) return child_->resolve(epoch, slice_.first + first, count, out, stride);
    for (uint64_t i = 0; i < count; ++i)
      child_->resolve(epoch, slice_.first + (first + i) * slice_.step, 1, out + i * stride, stride);
  }

 private:
  std::shared_ptr<const Indexed> child_;
  Slice slice_;
};

class SliceStream : public Stream {
 public:
  SliceStream(std::unique_ptr<Stream> child, Slice slice, std::shared_ptr<Execution> execution)
      : Stream(child->arity()), child_(std::move(child)), slice_(slice), execution_(std::move(execution)) {}

  void reset(uint64_t epoch) override {
    child_->reset(epoch);
    given_ = 0;
    passed_ = 0;
  }

  bool next(Leaf* out) override {
    if (given_ == slice_.count) return false;
    const uint64_t wanted = slice_.first + given_ * slice_.step;
    for (;;) {
      execution_->throw_if_stopped();
      if (!child_->next(out)) return false;
      if (passed_++ == wanted) break;
    }
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
  Slice slice_;
  std::shared_ptr<Execution> execution_;
  uint64_t given_ = 0, passed_ = 0;
};

class SliceNode : public UnaryNode {
 public:
  SliceNode(NodePtr child, Slice slice, std::string description, SourceLocation where)
      : UnaryNode(std::move(child), where), slice_(slice), description_(std::move(description)) {}

  std::string describe() const override { return description_; }

  const Node* selection_that_changes() const override {
    const bool all = slice_.step == 1 && slice_.first == 0 && child()->cardinality() >= 0 &&
                     cardinality() == child()->cardinality();
    if (!all && slice_ != Slice{} && child()->order_changes()) return this;
    return child()->selection_that_changes();
  }

  int64_t cardinality() const override {
    const int64_t below = child()->cardinality();
    if (below == Dataset::kUnknown) return slice_.count == 0 ? 0 : Dataset::kUnknown;
    const uint64_t kept = slice_.kept(below == Dataset::kInfinite ? kEndless : static_cast<uint64_t>(below));
    return kept == kEndless ? Dataset::kInfinite : static_cast<int64_t>(kept);
  }

  // Above a repeat the passes are no longer whole, except that dropping a start of endless data, or all but a
  // start, leaves the length of a pass as it is.
  int64_t epoch_size() const override {
    const int64_t below = child()->epoch_size(), total = cardinality();
    if (below == Dataset::kUnknown) return slice_.step == 1 && total >= 0 ? total : Dataset::kUnknown;
    if (child()->cardinality() == below) return total;
    if (slice_.step == 1) return total < 0 ? below : std::min(below, total);
    return below % static_cast<int64_t>(slice_.step) == 0 ? below / static_cast<int64_t>(slice_.step)
                                                          : Dataset::kUnknown;
  }

  Compiled compile(CompileContext& context) const override {
    Compiled compiled = child()->compile(context);
    if (compiled.indexed) {
      compiled.indexed = std::make_shared<SliceIndexed>(compiled.indexed, slice_);
      return compiled;
    }
    compiled.stream = std::make_unique<SliceStream>(std::move(compiled.stream), slice_, context.execution);
    return compiled;
  }

 private:
  Slice slice_;
  std::string description_;
};

[[noreturn]] void refuse(const char* name, SourceLocation where, const std::string& text) {
  throw InvalidArgument(fmt::format("{} ({}): {}", name, to_string(where), text));
}

}  // namespace

NodePtr make_shard(NodePtr child, int64_t index, int64_t count, SourceLocation where) {
  if (count < 1)
    refuse("shard", where, fmt::format("the number of shards must be at least 1, not {}", count));
  if (index < 0 || index >= count)
    refuse("shard", where, fmt::format("the index must be in [0, {}), it is {}", count, index));
  return std::make_shared<SliceNode>(
      std::move(child), Slice{static_cast<uint64_t>(index), static_cast<uint64_t>(count), kEndless},
      fmt::format("shard({}, {})", index, count), where);
}

NodePtr make_take(NodePtr child, int64_t count, SourceLocation where) {
  if (count < 0)
    refuse("take", where, fmt::format("the number of elements must not be negative, it is {}", count));
  return std::make_shared<SliceNode>(std::move(child), Slice{0, 1, static_cast<uint64_t>(count)},
                                     fmt::format("take({})", count), where);
}

NodePtr make_skip(NodePtr child, int64_t count, SourceLocation where) {
  if (count < 0)
    refuse("skip", where, fmt::format("the number of elements must not be negative, it is {}", count));
  return std::make_shared<SliceNode>(std::move(child), Slice{static_cast<uint64_t>(count), 1, kEndless},
                                     fmt::format("skip({})", count), where);
}

}  // namespace mox::data::internal
