// cache: the data of pass 0, kept in memory as it is first computed. Where the input has positions any
// element can be cached in any order, in one block a component, so that cached rows are read like an array's;
// a stream is recorded.
#include <fmt/format.h>

#include <atomic>
#include <cstring>
#include <map>

#include "runtime/base/error.h"
#include "runtime/data/internal/charge.h"
#include "runtime/data/internal/evaluated_stream.h"
#include "runtime/data/internal/node.h"
#include "runtime/refusals/out_of_memory.h"

namespace mox::data::internal {
namespace {

constexpr const char *kWhat = "the cache",
                     *kAdvice = "cache before what makes the elements large, or do without";

// ---- Inputs with positions.

class Slots {
 public:
  Slots(const ElementType& type, uint64_t size, std::unique_ptr<Charge> charge)
      : charge_(std::move(charge)), state_(new std::atomic<uint8_t>[size]), rows_(type.rows_vary ? size : 0) {
    for (uint64_t i = 0; i < size; ++i) state_[i].store(kEmpty, std::memory_order_relaxed);
    for (const auto& component : type.components)
      columns_.push_back(Array::uninitialized(stacked(component, size)));
  }

  static constexpr size_t kStateBytes = sizeof(std::atomic<uint8_t>);  // of each element, beside its own

  bool ready(uint64_t slot) const { return state_[slot].load(std::memory_order_acquire) == kReady; }
  // True for one caller, who then fills the slot and calls `publish`, or `abandon`.
  bool claim(uint64_t slot) {
    uint8_t expected = kEmpty;
    return state_[slot].compare_exchange_strong(expected, kFilling, std::memory_order_acquire);
  }
  void publish(uint64_t slot) { state_[slot].store(kReady, std::memory_order_release); }
  void abandon(uint64_t slot) { state_[slot].store(kEmpty, std::memory_order_release); }

  std::vector<Array>& columns() { return columns_; }
  int64_t& rows(uint64_t slot) { return rows_[slot]; }  // of a batch that may have fewer

 private:
  static constexpr uint8_t kEmpty = 0, kFilling = 1, kReady = 2;
  std::unique_ptr<Charge> charge_;
  std::unique_ptr<std::atomic<uint8_t>[]> state_;
  std::vector<Array> columns_;
  std::vector<int64_t> rows_;
};

class CacheIndexed : public Indexed {
 public:
  explicit CacheIndexed(uint64_t size) : Indexed(size, 1) {}
  void resolve(uint64_t epoch, uint64_t first, uint64_t count, Leaf* out, size_t stride) const override {
    for (uint64_t i = 0; i < count; ++i, out += stride) *out = {first + i, epoch, nullptr};
  }
};

class SlotEvaluator : public ElementEvaluator {
 public:
  // Without `slots` each element is made when it is asked for.
  SlotEvaluator(std::shared_ptr<const ElementEvaluator> child, std::shared_ptr<const Indexed> positions,
                std::shared_ptr<Slots> slots)
      : ElementEvaluator(child->type(), 1),
        child_(std::move(child)),
        positions_(std::move(positions)),
        slots_(std::move(slots)) {}

  Element make(const Leaf* leaf) const override {
    if (!fill(leaf->index)) return compute(leaf->index);
    Element element;
    const int64_t slot = leaf->index;
    for (size_t c = 0; c < type().components.size(); ++c) {
      Array whole = slots_->columns()[c].rows(slot, slot + 1).reshaped(type().components[c].shape);
      element.push_back(type().rows_vary ? whole.rows(0, slots_->rows(leaf->index)) : std::move(whole));
    }
    return element;
  }

  void write(const Leaf* leaf, std::span<std::byte* const> destinations) const override {
    if (type().rows_vary) return ElementEvaluator::write(leaf, destinations);
    if (!fill(leaf->index)) {
      std::vector<Leaf> leaves = resolved(leaf->index);
      return child_->write(leaves.data(), destinations);
    }
    for (size_t c = 0; c < destinations.size(); ++c) {
      const size_t bytes = type().components[c].bytes();
      if (bytes != 0) std::memcpy(destinations[c], slots_->columns()[c].data() + leaf->index * bytes, bytes);
    }
  }

  void append_names(const Leaf* leaf, std::vector<std::string>* names) const override {
    child_->append_names(resolved(leaf->index).data(), names);
  }

  bool view(const Leaf* leaves, size_t stride, size_t count, Element* rows) const override {
    if (!has_views() || count == 0) return false;
    for (size_t i = 0; i < count; ++i)
      if (leaves[i * stride].index != leaves->index + i || !slots_->ready(leaves[i * stride].index))
        return false;
    const int64_t first = leaves->index;
    for (const auto& column : slots_->columns()) rows->push_back(column.rows(first, first + count));
    return true;
  }
  bool has_views() const override { return slots_ && !type().rows_vary; }

 private:
  std::vector<Leaf> resolved(uint64_t slot) const {
    std::vector<Leaf> leaves(child_->arity());
    positions_->resolve(0, slot, 1, leaves.data(), leaves.size());
    return leaves;
  }

  Element compute(uint64_t slot) const { return child_->make(resolved(slot).data()); }

  // Makes the slot ready; false if there is none, or if another thread is just filling it: computing the
  // element again beats waiting.
  bool fill(uint64_t slot) const {
    if (!slots_) return false;
    if (slots_->ready(slot)) return true;
    if (!slots_->claim(slot)) return slots_->ready(slot);
    try {
      std::vector<std::byte*> destinations;
      for (size_t c = 0; c < type().components.size(); ++c)
        destinations.push_back(slots_->columns()[c].data() + slot * type().components[c].bytes());
      if (type().rows_vary) {
        const Element element = compute(slot);
        slots_->rows(slot) = element[0].shape()[0];
        for (size_t c = 0; c < element.size(); ++c)
          if (element[c].bytes() != 0) std::memcpy(destinations[c], element[c].data(), element[c].bytes());
      } else {
        child_->write(resolved(slot).data(), destinations);
      }
    } catch (...) {
      slots_->abandon(slot);
      throw;
    }
    slots_->publish(slot);
    return true;
  }

  std::shared_ptr<const ElementEvaluator> child_;
  std::shared_ptr<const Indexed> positions_;
  std::shared_ptr<Slots> slots_;
};

// ---- Streams.

struct Recording {
  std::unique_ptr<Charge> charge;
  std::vector<std::shared_ptr<const Payload>> elements;
};

// Where a finished recording is left for the next pipeline.
struct Shared {
  std::mutex mutex;
  std::map<std::pair<uint64_t, uint64_t>, std::shared_ptr<Slots>> slots;  // by (seed, stage)
  std::map<std::pair<uint64_t, uint64_t>, std::shared_ptr<const Recording>> recordings;
};

// The first pass, computed anew in each.
class UnrecordedStream : public Stream {
 public:
  explicit UnrecordedStream(std::unique_ptr<Stream> child) : Stream(1), child_(std::move(child)) {}

  void reset(uint64_t epoch) override {
    epoch_ = epoch;
    position_ = 0;
    child_->reset(0);
  }

  bool next(Leaf* out) override {
    if (!child_->next(out)) return false;
    *out = {position_++, epoch_, std::move(out->payload)};
    return true;
  }

  void save(std::vector<uint64_t>* state) const override {
    state->push_back(epoch_);
    state->push_back(position_);
  }

  void restore(StateReader& state) override {
    reset(state.take());
    const uint64_t position = state.take();
    for (Leaf leaf; position_ < position && next(&leaf);) continue;
  }

 private:
  std::unique_ptr<Stream> child_;
  uint64_t epoch_ = 0, position_ = 0;
};

class RecordingStream : public Stream {
 public:
  RecordingStream(std::unique_ptr<Stream> child, std::shared_ptr<Shared> shared,
                  std::pair<uint64_t, uint64_t> key, const std::string& label,
                  std::shared_ptr<Execution> execution)
      : Stream(1),
        child_(std::move(child)),
        shared_(std::move(shared)),
        key_(key),
        execution_(std::move(execution)) {
    std::lock_guard lock(shared_->mutex);
    if (auto found = shared_->recordings.find(key_); found != shared_->recordings.end()) {
      finished_ = found->second;
    } else {
      recorded_.charge = std::make_unique<Charge>(execution_->memory_budget, label, kWhat, kAdvice);
    }
  }

  void reset(uint64_t epoch) override {
    epoch_ = epoch;
    position_ = 0;
  }

  bool next(Leaf* out) override {
    while (!finished_ && recorded_.elements.size() <= position_) record();
    const auto& recording = finished_ ? finished_->elements : recorded_.elements;
    if (position_ >= recording.size()) return false;
    *out = {position_, epoch_, recording[position_]};
    ++position_;
    return true;
  }

  void save(std::vector<uint64_t>* state) const override {
    state->push_back(epoch_);
    state->push_back(position_);
  }

  void restore(StateReader& state) override {
    epoch_ = state.take();
    position_ = state.take();
  }

 private:
  void record() {
    execution_->throw_if_stopped();
    if (!started_) child_->reset(0);
    started_ = true;
    Leaf leaf;
    if (child_->next(&leaf)) {
      recorded_.charge->add(sizeof leaf.payload + bytes_of(*leaf.payload));
      recorded_.elements.push_back(std::move(leaf.payload));
      return;
    }
    finished_ = std::make_shared<const Recording>(std::move(recorded_));
    std::lock_guard lock(shared_->mutex);
    shared_->recordings[key_] = finished_;
  }

  std::unique_ptr<Stream> child_;
  std::shared_ptr<Shared> shared_;
  std::pair<uint64_t, uint64_t> key_;
  std::shared_ptr<Execution> execution_;
  Recording recorded_;
  std::shared_ptr<const Recording> finished_;
  uint64_t epoch_ = 0, position_ = 0;
  bool started_ = false;
};

// Of leaves that carry what the cache has, and counts.
class RecordedEvaluator : public ValueEvaluator {
 public:
  using ValueEvaluator::ValueEvaluator;
  Carried carried() const override { return {}; }
};

class CacheNode : public UnaryNode {
 public:
  CacheNode(NodePtr child, SourceLocation where)
      : UnaryNode(std::move(child), where), shared_(std::make_shared<Shared>()) {
    if (this->child()->cardinality() == Dataset::kInfinite)
      refuse(fmt::format(
          "the data set below ({}) never ends, so it cannot be kept in memory; put cache before repeat",
          this->child()->label()));
  }

  std::string describe() const override { return "cache"; }
  bool find_order_changes() const override { return false; }  // all passes are pass 0's
  const Node* find_selection_that_changes() const override { return nullptr; }

  // What lies below is one pass, whatever repeats it has.
  int64_t find_epoch_size() const override { return cardinality(); }

  Compiled compile(CompileContext& context) const override {
    Compiled below = child()->compile(context);
    const bool other_order = context.one_order && child()->order_follows_seed();
    const uint64_t seed = context.execution->seed;
    const uint64_t one_order = mix_hash(mix_hash(seed, stable_hash("one order")), context.part);
    const std::pair<uint64_t, uint64_t> key{other_order ? one_order : seed, context.new_stage()};
    Compiled result;
    if (below.indexed) {
      const uint64_t size = below.indexed->size();
      result.evaluator = std::make_shared<SlotEvaluator>(
          below.evaluator, below.indexed,
          context.without_caches ? nullptr : slots(*context.execution, key, size, below.evaluator->type()));
      result.indexed = std::make_shared<CacheIndexed>(size);
    } else {
      auto evaluated = std::make_unique<EvaluatedStream>(std::move(below.stream), below.evaluator, nullptr,
                                                         label(), context.execution, UINT64_MAX);
      if (context.without_caches) {
        result.stream = std::make_unique<UnrecordedStream>(std::move(evaluated));
        result.evaluator = std::make_shared<ValueEvaluator>(element_type());
      } else {
        result.stream =
            std::make_unique<RecordingStream>(std::move(evaluated), shared_, key, label(), context.execution);
        result.evaluator = std::make_shared<RecordedEvaluator>(element_type());
      }
    }
    return result;
  }

 private:
  std::shared_ptr<Slots> slots(Execution& execution, std::pair<uint64_t, uint64_t> key, uint64_t size,
                               const ElementType& type) const {
    size_t bytes = 0;
    for (const auto& component : type.components) {
      size_t column = 0;
      if (__builtin_mul_overflow(component.bytes(), size, &column) ||
          __builtin_add_overflow(bytes, column, &bytes))
        refuse(
            fmt::format("{} elements of {} bytes are more than memory can address", size, component.bytes()));
    }
    bytes += size * Slots::kStateBytes;
    if (type.rows_vary) bytes += size * sizeof(int64_t);
    std::lock_guard lock(shared_->mutex);
    auto& slots = shared_->slots[key];
    if (slots) return slots;
    auto charge = std::make_unique<Charge>(execution.memory_budget, label(), kWhat, kAdvice);
    charge->add(bytes);
    try {
      slots = std::make_shared<Slots>(type, size, std::move(charge));
    } catch (...) {
      mox::internal::rethrow_naming_memory(
          [&] { return fmt::format("{}: {} of {} elements", label(), kWhat, size); }, kAdvice);
    }
    return slots;
  }

  std::shared_ptr<Shared> shared_;
};

}  // namespace

NodePtr make_cache(NodePtr child, SourceLocation where) {
  return make_node<CacheNode>(std::move(child), where);
}

}  // namespace mox::data::internal
