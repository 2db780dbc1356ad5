// batch: stacks elements along a new first axis. Samples are read straight into the batch's memory.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "runtime/base/error.h"
#include "runtime/data/internal/node.h"
#include "runtime/data/internal/operations/parallel.h"

namespace mox::data::internal {
namespace {

uint64_t batches_of(uint64_t elements, uint64_t size, bool drop_remainder) {
  if (elements == kEndless) return kEndless;
  return drop_remainder ? elements / size : elements / size + (elements % size != 0);
}

class BatchIndexed : public Indexed {
 public:
  explicit BatchIndexed(uint64_t batches) : Indexed(batches, 1) {}
  void resolve(uint64_t epoch, uint64_t first, uint64_t count, Leaf* out, size_t stride) const override {
    for (uint64_t i = 0; i < count; ++i, out += stride) *out = {first + i, epoch, nullptr};
  }
};

class BatchStream : public Stream {
 public:
  BatchStream(std::unique_ptr<Stream> child, uint64_t size, bool drop_remainder,
              std::shared_ptr<Execution> execution)
      : Stream(1),
        child_(std::move(child)),
        size_(size),
        drop_remainder_(drop_remainder),
        execution_(std::move(execution)) {}

  void reset(uint64_t epoch) override {
    child_->reset(epoch);
    epoch_ = epoch;
    given_ = 0;
  }

  bool next(Leaf* out) override {
    const size_t arity = child_->arity();
    auto payload = std::make_shared<Payload>();
    auto& members = payload->members;
    uint64_t count = 0;
    for (; count < size_; ++count) {
      execution_->throw_if_stopped();
      // Grows by doubling, not to the full size at once: the batch size is the user's, the data may be short.
      members.resize((count + 1) * arity);
      if (!child_->next(&members[count * arity])) break;
    }
    members.resize(count * arity);
    if (count == 0 || (count < size_ && drop_remainder_)) return false;
    *out = {given_++, epoch_, std::move(payload)};
    return true;
  }

  void save(std::vector<uint64_t>* state) const override {
    state->push_back(epoch_);
    state->push_back(given_);
    child_->save(state);
  }

  void restore(StateReader& state) override {
    epoch_ = state.take();
    given_ = state.take();
    child_->restore(state);
  }

 private:
  std::unique_ptr<Stream> child_;
  uint64_t size_;
  bool drop_remainder_;
  std::shared_ptr<Execution> execution_;
  uint64_t epoch_ = 0, given_ = 0;
};

// The leaves of one batch's elements. The memory is kept by the thread for the next batch; it is taken out
// while in use, because a batch of batches needs one at each level.
class Members {
 public:
  Members() : leaves_(std::move(kept())) { kept().clear(); }
  ~Members() { kept() = std::move(leaves_); }
  Members(const Members&) = delete;
  Members& operator=(const Members&) = delete;
  std::vector<Leaf>& leaves() { return leaves_; }

 private:
  static std::vector<Leaf>& kept() {
    thread_local std::vector<Leaf> leaves;
    return leaves;
  }
  std::vector<Leaf> leaves_;
};

class BatchEvaluator : public ElementEvaluator {
 public:
  // `members` is null over a stream, whose batches carry their leaves.
  BatchEvaluator(ElementType type, std::shared_ptr<const ElementEvaluator> child,
                 std::shared_ptr<const Indexed> members, uint64_t size, std::shared_ptr<Execution> execution)
      : ElementEvaluator(std::move(type), 1),
        child_(std::move(child)),
        members_(std::move(members)),
        size_(size),
        execution_(std::move(execution)) {
    for (const auto& component : child_->type().components) row_bytes_.push_back(component.bytes());
  }

  Element make(const Leaf* batch) const override {
    Members scratch;
    const auto [leaves, count] = resolve(*batch, scratch);
    Element rows;
    if (child_->has_views() && child_->view(leaves, stride(), count, &rows)) return rows;
    rows.clear();
    std::vector<std::byte*> starts;
    for (const auto& component : type().components) {
      const TensorType actual = with_rows(component, count);
      rows.emplace_back(actual, execution_->pool.take(actual.bytes()));
      starts.push_back(rows.back().data());
    }
    write_rows(leaves, count, starts);
    return rows;
  }

  void write(const Leaf* batch, std::span<std::byte* const> destinations) const override {
    if (type().rows_vary) return ElementEvaluator::write(batch, destinations);
    Members scratch;
    const auto [leaves, count] = resolve(*batch, scratch);
    write_rows(leaves, count, destinations);
  }

  void append_names(const Leaf* batch, std::vector<std::string>* names) const override {
    Members scratch;
    const auto [leaves, count] = resolve(*batch, scratch);
    for (size_t i = 0; i < count; ++i) child_->append_names(leaves + i * stride(), names);
  }

  Carried carried() const override {
    if (members_) return {};
    // As a number of any size: a batch may be larger than all data are.
    const double bytes = static_cast<double>(size_) * static_cast<double>(child_->carried().bytes);
    return {static_cast<size_t>(std::min(bytes, 1e18)), false};
  }

  uint64_t pass_of(const Leaf* batch) const override {
    if (!members_) return child_->pass_of(batch->payload->members.data());
    std::vector<Leaf> first(stride());
    members_->resolve(batch->epoch, batch->index * size_, 1, first.data(), stride());
    return child_->pass_of(first.data());
  }

 private:
  size_t stride() const { return child_->arity(); }

  std::pair<const Leaf*, size_t> resolve(const Leaf& batch, Members& scratch) const {
    if (!members_) return {batch.payload->members.data(), batch.payload->members.size() / stride()};
    const uint64_t first = batch.index * size_;
    const uint64_t count = std::min(size_, members_->size() - first);
    scratch.leaves().resize(count * stride());
    members_->resolve(batch.epoch, first, count, scratch.leaves().data(), stride());
    return {scratch.leaves().data(), count};
  }

  void write_rows(const Leaf* leaves, size_t count, std::span<std::byte* const> starts) const {
    if (execution_->split_samples.load(std::memory_order_relaxed))
      return write_rows_split(leaves, count, starts);
    constexpr size_t kAhead = 32;  // requests at a time to a store that is far away
    std::vector<std::byte*> destinations(starts.begin(), starts.end());
    for (size_t i = 0; i < std::min(kAhead, count); ++i) child_->will_read(leaves + i * stride());
    for (size_t i = 0; i < count; ++i) {
      if (i + kAhead < count) child_->will_read(leaves + (i + kAhead) * stride());
      child_->write(leaves + i * stride(), destinations);
      for (size_t c = 0; c < destinations.size(); ++c) destinations[c] += row_bytes_[c];
    }
  }

  void write_rows_split(const Leaf* leaves, size_t count, std::span<std::byte* const> starts) const {
    // Of several failures the first in the batch's order is reported, on any number of threads.
    std::mutex mutex;
    std::exception_ptr error;
    size_t failed = SIZE_MAX;
    for (size_t i = 0; i < count; ++i) child_->will_read(leaves + i * stride());
    for_each_sample(count, [&](size_t i) {
      if (execution_->stop.load(std::memory_order_relaxed)) return;
      try {
        std::vector<std::byte*> destinations(starts.size());
        for (size_t c = 0; c < starts.size(); ++c) destinations[c] = starts[c] + i * row_bytes_[c];
        child_->write(leaves + i * stride(), destinations);
      } catch (...) {
        std::lock_guard lock(mutex);
        if (i < failed) {
          failed = i;
          error = std::current_exception();
        }
      }
    });
    if (error) std::rethrow_exception(error);
    execution_->throw_if_stopped();
  }

  std::shared_ptr<const ElementEvaluator> child_;
  std::shared_ptr<const Indexed> members_;
  uint64_t size_;
  std::shared_ptr<Execution> execution_;
  std::vector<size_t> row_bytes_;
};

class BatchNode : public UnaryNode {
 public:
  BatchNode(NodePtr child, int64_t size, bool drop_remainder, SourceLocation where)
      : UnaryNode(std::move(child), where), size_(size), drop_remainder_(drop_remainder) {
    if (size < 1) refuse(fmt::format("the batch size must be at least 1, not {}", size));
  }

  std::string describe() const override {
    return fmt::format("batch({}{})", size_, drop_remainder_ ? ", drop_remainder" : "");
  }

  int64_t find_cardinality() const override {
    const int64_t below = child()->cardinality();
    return below < 0 ? below : batches(below);
  }

  int64_t find_epoch_size() const override {
    const int64_t below = child()->epoch_size();
    if (below < 0) return below;
    if (below == child()->cardinality()) return batches(below);
    return below % size_ == 0 ? below / size_ : Dataset::kUnknown;  // batches run across the ends of passes
  }

  bool find_rows_vary() const override {
    if (drop_remainder_ || child()->cardinality() == Dataset::kInfinite) return false;
    return child()->cardinality() < 0 || child()->cardinality() % size_ != 0;
  }

  Compiled compile(CompileContext& context) const override {
    Compiled below = child()->compile(context);
    const uint64_t size = size_;
    Compiled result;
    result.evaluator = std::make_shared<BatchEvaluator>(element_type(), below.evaluator, below.indexed, size,
                                                        context.execution);
    if (below.indexed)
      result.indexed =
          std::make_shared<BatchIndexed>(batches_of(below.indexed->size(), size, drop_remainder_));
    else
      result.stream =
          std::make_unique<BatchStream>(std::move(below.stream), size, drop_remainder_, context.execution);
    return result;
  }

  int64_t find_requested_prefetch() const override {
    const int64_t below = child()->requested_prefetch();
    return below / size_ + (below % size_ != 0);
  }

  Element probe() const override {
    const Element one = child()->probe();
    Element element = zero_element(signature());
    for (size_t c = 0; c < element.size(); ++c)
      for (int64_t row = 0; row < size_ && one[c].bytes() != 0; ++row)
        std::memcpy(element[c].data() + row * one[c].bytes(), one[c].data(), one[c].bytes());
    return element;
  }

 protected:
  std::vector<TensorType> infer_signature() const override {
    std::vector<TensorType> types;
    for (const auto& type : child()->signature()) types.push_back(stacked(type, size_));
    return types;
  }

 private:
  int64_t batches(int64_t elements) const { return batches_of(elements, size_, drop_remainder_); }

  int64_t size_;
  bool drop_remainder_;
};

}  // namespace

NodePtr make_batch(NodePtr child, int64_t size, bool drop_remainder, SourceLocation where) {
  return make_node<BatchNode>(std::move(child), size, drop_remainder, where);
}

}  // namespace mox::data::internal
