// interleave: several data sets in turn, a few of them at a time. A stream whose position is that of the open
// inputs, so that resuming costs no more than theirs does.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/data/internal/node.h"

namespace mox::data::internal {
namespace {

// An element's leaves: its number in the pass, by which maps above tell samples apart; the input it comes
// from; the input's own.
constexpr int kOwnLeaves = 2;
constexpr uint64_t kClosed = UINT64_MAX;

template <typename Part>
int most_leaves(const std::vector<Part>& parts) {
  int most = 0;
  for (const auto& part : parts) most = std::max(most, part->arity());
  return kOwnLeaves + most;
}

class InterleaveStream : public Stream {
 public:
  InterleaveStream(std::vector<std::unique_ptr<Stream>> inputs, size_t places, uint64_t block)
      : Stream(most_leaves(inputs)), inputs_(std::move(inputs)), places_(places, kClosed), block_(block) {}

  void reset(uint64_t epoch) override {
    epoch_ = epoch;
    given_ = place_ = in_block_ = next_input_ = 0;
    for (uint64_t& input : places_) input = open_next();
  }

  bool next(Leaf* out) override {
    for (size_t idle = 0; idle < places_.size();) {
      uint64_t& input = places_[place_];
      // An input that ends leaves its place, and the rest of its turn, to the next one.
      while (input != kClosed && !inputs_[input]->next(out + kOwnLeaves)) {
        input = open_next();
        in_block_ = 0;
      }
      if (input == kClosed) {
        ++idle;
        end_turn();
        continue;
      }
      out[0] = {given_++, epoch_, nullptr};
      out[1] = {input, epoch_, nullptr};
      if (++in_block_ == block_) end_turn();
      return true;
    }
    return false;
  }

  void save(std::vector<uint64_t>* state) const override {
    state->insert(state->end(), {epoch_, given_, place_, in_block_, next_input_});
    for (uint64_t input : places_) {
      state->push_back(input);
      if (input != kClosed) inputs_[input]->save(state);
    }
  }

  void restore(StateReader& state) override {
    epoch_ = state.take();
    given_ = state.take();
    place_ = state.take();
    in_block_ = state.take();
    next_input_ = state.take();
    if (place_ >= places_.size() || in_block_ >= block_ || next_input_ > inputs_.size())
      throw DataError("the data cursor is damaged: an interleave has no such position");
    for (uint64_t& input : places_) {
      input = state.take();
      if (input == kClosed) continue;
      if (input >= next_input_)
        throw DataError(
            fmt::format("the data cursor is damaged: input {} of an interleave is not open", input));
      inputs_[input]->restore(state);
    }
  }

 private:
  uint64_t open_next() {
    if (next_input_ == inputs_.size()) return kClosed;
    inputs_[next_input_]->reset(epoch_);
    return next_input_++;
  }

  void end_turn() {
    place_ = (place_ + 1) % places_.size();
    in_block_ = 0;
  }

  std::vector<std::unique_ptr<Stream>> inputs_;
  std::vector<uint64_t> places_;  // the input that is open at each
  uint64_t block_;
  uint64_t epoch_ = 0, given_ = 0;
  uint64_t place_ = 0, in_block_ = 0;  // whose turn it is, and how far that is
  uint64_t next_input_ = 0;
};

class InterleaveEvaluator : public ElementEvaluator {
 public:
  InterleaveEvaluator(ElementType type, std::vector<std::shared_ptr<const ElementEvaluator>> inputs)
      : ElementEvaluator(std::move(type), most_leaves(inputs)), inputs_(std::move(inputs)) {}

  void append_names(const Leaf* leaves, std::vector<std::string>* names) const override {
    of(leaves).append_names(leaves + kOwnLeaves, names);
  }
  Element make(const Leaf* leaves) const override { return of(leaves).make(leaves + kOwnLeaves); }
  Carried carried() const override {
    Carried most{0, true};
    for (const auto& input : inputs_) {
      const Carried other = input->carried();
      most = {std::max(most.bytes, other.bytes), most.is_given && other.is_given};
    }
    return most;
  }
  void write(const Leaf* leaves, std::span<std::byte* const> destinations) const override {
    of(leaves).write(leaves + kOwnLeaves, destinations);
  }
  uint64_t pass_of(const Leaf* leaves) const override { return of(leaves).pass_of(leaves + kOwnLeaves); }
  void will_read(const Leaf* leaves) const override { of(leaves).will_read(leaves + kOwnLeaves); }

 private:
  const ElementEvaluator& of(const Leaf* leaves) const { return *inputs_[leaves[1].index]; }

  std::vector<std::shared_ptr<const ElementEvaluator>> inputs_;
};

class InterleaveNode : public Node {
 public:
  InterleaveNode(std::vector<NodePtr> inputs, int64_t cycle, int64_t block, SourceLocation where)
      : Node(where), inputs_(std::move(inputs)), cycle_(cycle), block_(block) {
    if (inputs_.empty()) refuse("at least one data set is needed, none was given");
    if (cycle < 1) refuse(fmt::format("at least one data set must be open at a time, not {}", cycle));
    if (block < 1) refuse(fmt::format("each data set must give at least one element in turn, not {}", block));
    for (size_t i = 1; i < inputs_.size(); ++i)
      if (inputs_[i]->signature() != inputs_[0]->signature())
        refuse(fmt::format(
            "the data sets must have elements of one type, but number 0 has {} and number {} has {}",
            types_text(inputs_[0]->signature()), i, types_text(inputs_[i]->signature())));
  }

  std::span<const NodePtr> children() const override { return inputs_; }
  std::string describe() const override {
    return fmt::format("interleave({}, {}, {})", inputs_.size(), cycle_, block_);
  }

  int64_t find_cardinality() const override {
    int64_t total = 0;
    bool unknown = false;
    for (const auto& input : inputs_) {
      const int64_t count = input->cardinality();
      if (count == Dataset::kInfinite) return count;
      unknown |= count == Dataset::kUnknown;
      if (!unknown && __builtin_add_overflow(total, count, &total)) unknown = true;
    }
    return unknown ? Dataset::kUnknown : total;
  }

  // Passes of inputs that repeat themselves are mixed.
  int64_t find_epoch_size() const override {
    const bool plain = std::all_of(inputs_.begin(), inputs_.end(), [](const auto& input) {
      return input->cardinality() >= 0 && input->epoch_size() == input->cardinality();
    });
    return plain ? cardinality() : Dataset::kUnknown;
  }

  bool find_rows_vary() const override {
    return std::any_of(inputs_.begin(), inputs_.end(), [](const auto& input) { return input->rows_vary(); });
  }

  Compiled compile(CompileContext& context) const override {
    std::vector<std::unique_ptr<Stream>> streams;
    std::vector<std::shared_ptr<const ElementEvaluator>> evaluators;
    const uint64_t outer = context.part;
    uint64_t number = 0;
    for (const auto& input : inputs_) {
      if (number > 0) context.part = mix_hash(outer, number);
      ++number;
      Compiled compiled = input->compile(context);
      evaluators.push_back(compiled.evaluator);
      streams.push_back(compiled.take_stream());
    }
    context.part = outer;
    const auto places = std::min(static_cast<size_t>(cycle_), streams.size());
    return {.indexed = nullptr,
            .stream =
                std::make_unique<InterleaveStream>(std::move(streams), places, static_cast<uint64_t>(block_)),
            .evaluator = std::make_shared<InterleaveEvaluator>(element_type(), std::move(evaluators))};
  }

  Element probe() const override { return inputs_[0]->probe(); }

 protected:
  std::vector<TensorType> infer_signature() const override { return inputs_[0]->signature(); }

 private:
  std::vector<NodePtr> inputs_;
  int64_t cycle_, block_;
};

}  // namespace

NodePtr make_interleave(std::vector<NodePtr> inputs, int64_t cycle, int64_t block, SourceLocation where) {
  return make_node<InterleaveNode>(std::move(inputs), cycle, block, where);
}

}  // namespace mox::data::internal
