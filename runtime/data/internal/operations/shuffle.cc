// shuffle: over positions, with a buffer as large as the data, a keyed permutation that is never stored;
// otherwise a window of leaves from which each element is drawn, as in TensorFlow.
#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <new>
#include <optional>
#include <span>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/data/internal/charge.h"
#include "runtime/data/internal/node.h"

namespace mox::data::internal {
namespace {

class PermutedIndexed : public Indexed {
 public:
  PermutedIndexed(std::shared_ptr<const Indexed> child, uint64_t seed, bool once)
      : Indexed(child->size(), child->arity()), child_(std::move(child)), seed_(seed), once_(once) {}

  void resolve(uint64_t epoch, uint64_t first, uint64_t count, Leaf* out, size_t stride) const override {
    if (count == 0) return;
    const Permutation permutation(size(), seed_, once_ ? 0 : epoch);
    for (uint64_t i = 0; i < count; ++i)
      child_->resolve(epoch, permutation(first + i), 1, out + i * stride, stride);
  }

 private:
  std::shared_ptr<const Indexed> child_;
  uint64_t seed_;
  bool once_;
};

// The leaf without what can be made again of it.
Leaf without_replaceable(const Leaf& leaf) {
  if (!leaf.payload) return leaf;
  if (leaf.payload->is_replaceable) return {leaf.index, leaf.epoch, nullptr};
  if (leaf.payload->members.empty()) return leaf;
  auto payload = std::make_shared<Payload>(*leaf.payload);
  for (Leaf& member : payload->members) member = without_replaceable(member);
  return {leaf.index, leaf.epoch, std::move(payload)};
}

// A window of leaves. Where the elements that they carry would leave less than a quarter of the memory
// budget, those that can be made again are let go: the window then holds the places of samples, and each that
// is drawn is read a second time, with the same bits.
class WindowStream : public Stream {
 public:
  WindowStream(std::unique_ptr<Stream> child, uint64_t window, std::string label,
               std::shared_ptr<Execution> execution, uint64_t seed, bool once)
      : Stream(child->arity()),
        child_(std::move(child)),
        window_(window),
        label_(std::move(label)),
        execution_(std::move(execution)),
        seed_(seed),
        once_(once),
        charge_(execution_->memory_budget, label_, fmt::format("its buffer of {} elements", window_),
                "shuffle before what makes the elements large, or with a smaller buffer") {}

  void reset(uint64_t epoch) override {
    child_->reset(epoch);
    epoch_ = epoch;
    emitted_ = 0;
    for (const Leaf& leaf : buffer_) charge_.give_back(bytes_of(leaf));
    buffer_.clear();
    exhausted_ = false;
  }

  bool next(Leaf* out) override {
    const size_t leaves = arity();
    while (!exhausted_ && buffer_.size() / leaves < window_) pull();
    const uint64_t filled = buffer_.size() / leaves;
    if (filled == 0) return false;
    const uint64_t drawn = RandomStream(seed_, once_ ? 0 : epoch_).below(emitted_++, filled);
    Leaf* slot = &buffer_[drawn * leaves];
    for (size_t i = 0; i < leaves; ++i) charge_.give_back(bytes_of(slot[i]));
    std::move(slot, slot + leaves, out);
    // The last element takes the free place and the next one of the input comes to the end.
    if (drawn + 1 != filled) std::move(buffer_.end() - leaves, buffer_.end(), slot);
    buffer_.resize(buffer_.size() - leaves);
    return true;
  }

  void save(std::vector<uint64_t>* state) const override {
    state->push_back(epoch_);
    state->push_back(emitted_);
  }

  void restore(StateReader& state) override {
    reset(state.take());
    const uint64_t emitted = state.take();
    std::vector<Leaf> leaves(arity());
    while (emitted_ < emitted) {
      execution_->throw_if_stopped();
      if (!next(leaves.data()))
        throw DataError(fmt::format("{}: the data cursor is at element {} of pass {}, but there are only {}",
                                    label_, emitted, epoch_, emitted_));
    }
  }

 private:
  void pull() {
    execution_->throw_if_stopped();
    const size_t leaves = arity();
    buffer_.resize(buffer_.size() + leaves);
    bool got = false;
    try {
      got = child_->next(&buffer_[buffer_.size() - leaves]);
    } catch (...) {
      buffer_.resize(buffer_.size() - leaves);
      throw;
    }
    if (!got) {
      buffer_.resize(buffer_.size() - leaves);
      exhausted_ = true;
      return;
    }
    if (!holds_places_ && charge_.try_to_grow(bytes_of_all(std::span(buffer_).last(leaves)))) return;
    if (!std::exchange(holds_places_, true)) hold_places(std::span(buffer_).first(buffer_.size() - leaves));
    const std::span<Leaf> pulled = std::span(buffer_).last(leaves);  // which may have moved
    for (Leaf& leaf : pulled) leaf = without_replaceable(leaf);
    charge_.add(bytes_of_all(pulled));
  }

  void hold_places(std::span<Leaf> held) {
    const size_t bytes = bytes_of_all(held);
    for (Leaf& leaf : held) leaf = without_replaceable(leaf);
    charge_.give_back(bytes - bytes_of_all(held));
    // What counts in no budget: the pool's buffers, and what malloc keeps of many small samples.
    execution_->pool.trim();
    ::malloc_trim(0);
    make_room();
  }

  // For all places that the budget has room for: growing by copies, the window would take twice and thrice as
  // much. What is not used of it takes no memory.
  void make_room() {
    const uint64_t most = execution_->memory_budget->bytes() / sizeof(Leaf) + arity();
    try {
      buffer_.reserve(std::max<uint64_t>(buffer_.size(), std::min(window_, most / arity()) * arity()));
    } catch (const std::bad_alloc&) {  // under a limit on addresses it grows as it did
    }
  }

  static size_t bytes_of_all(std::span<const Leaf> leaves) {
    size_t bytes = 0;
    for (const Leaf& leaf : leaves) bytes += bytes_of(leaf);
    return bytes;
  }

  std::unique_ptr<Stream> child_;
  uint64_t window_;
  std::string label_;
  std::shared_ptr<Execution> execution_;
  uint64_t seed_;
  bool once_;
  Charge charge_;
  std::vector<Leaf> buffer_;
  uint64_t epoch_ = 0, emitted_ = 0;
  bool exhausted_ = false;
  bool holds_places_ = false;  // of what can be made again
};

class ShuffleNode : public UnaryNode {
 public:
  ShuffleNode(NodePtr child, int64_t buffer_size, std::optional<uint64_t> once, SourceLocation where)
      : UnaryNode(std::move(child), where), buffer_size_(buffer_size), once_(once) {
    if (buffer_size < 1) refuse(fmt::format("the buffer size must be at least 1, not {}", buffer_size));
  }

  std::string describe() const override {
    return once_ ? fmt::format("shuffle_once({}, {})", buffer_size_, *once_)
                 : fmt::format("shuffle({})", buffer_size_);
  }
  bool find_mixes_passes() const override {
    return (buffer_size_ > 1 && cardinality() != epoch_size()) || UnaryNode::find_mixes_passes();
  }
  bool find_order_changes() const override { return !once_ && buffer_size_ > 1; }
  // Data without end have no parts that could be kept apart.
  bool find_order_follows_seed() const override {
    return child()->cardinality() != Dataset::kInfinite && (order_changes() || child()->order_follows_seed());
  }

  Compiled compile(CompileContext& context) const override {
    Compiled compiled = child()->compile(context);
    const uint64_t stage = context.new_stage();
    const bool one_order = once_ || context.one_order;
    const uint64_t seed = one_order ? mix_hash(once_.value_or(context.part), stable_hash("shuffle_once"))
                                    : context.stage_seed(stage);
    const uint64_t window = buffer_size_;
    if (compiled.indexed && window >= compiled.indexed->size()) {
      compiled.indexed = std::make_shared<PermutedIndexed>(compiled.indexed, seed, one_order);
      return compiled;
    }
    compiled.stream = std::make_unique<WindowStream>(compiled.take_stream(), window, label(),
                                                     context.execution, seed, one_order);
    compiled.indexed = nullptr;
    return compiled;
  }

 private:
  int64_t buffer_size_;
  std::optional<uint64_t> once_;  // the seed of the one order
};

}  // namespace

NodePtr make_shuffle(NodePtr child, int64_t buffer_size, SourceLocation where) {
  return make_node<ShuffleNode>(std::move(child), buffer_size, std::nullopt, where);
}

NodePtr make_shuffle_once(NodePtr child, int64_t buffer_size, uint64_t seed, SourceLocation where) {
  return make_node<ShuffleNode>(std::move(child), buffer_size, seed, where);
}

}  // namespace mox::data::internal
