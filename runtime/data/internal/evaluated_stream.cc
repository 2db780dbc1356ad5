#include "runtime/data/internal/evaluated_stream.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/data/internal/operations/parallel.h"
#include "runtime/data/internal/sample_error.h"

namespace mox::data::internal {
namespace {

constexpr size_t kMostElements = 64, kChunkBytes = size_t{64} << 20;

}  // namespace

EvaluatedStream::EvaluatedStream(std::unique_ptr<Stream> child,
                                 std::shared_ptr<const ElementEvaluator> evaluator, Predicate predicate,
                                 std::string label, std::shared_ptr<Execution> execution, uint64_t patience,
                                 bool is_replaceable)
    : Stream(1),
      child_(std::move(child)),
      evaluator_(std::move(evaluator)),
      predicate_(std::move(predicate)),
      label_(std::move(label)),
      execution_(std::move(execution)),
      patience_(patience),
      is_replaceable_(is_replaceable),
      element_bytes_(bytes_of(evaluator_->type())),
      chunk_(std::clamp<size_t>(kChunkBytes / std::max<size_t>(element_bytes_, 1), 1, kMostElements)),
      ahead_(execution_->memory_budget, MemoryBudget::Share::Of::kBatches) {}

void EvaluatedStream::reset(uint64_t epoch) {
  child_->reset(epoch);
  rejected_ = 0;
  begin();
}

void EvaluatedStream::begin() {
  ahead_.resize(chunk_ * element_bytes_);
  outcomes_.clear();
  used_ = 0;
  start_.clear();
  child_->save(&start_);
}

bool EvaluatedStream::next(Leaf* out) {
  for (;;) {
    for (; used_ < outcomes_.size(); ++used_) {
      Outcome& outcome = outcomes_[used_];
      if (outcome.error) std::rethrow_exception(outcome.error);
      if (!outcome.keep) {
        if (++rejected_ > patience_)
          throw FailedPrecondition(fmt::format(
              "{}: none of the last {} elements of endless data passed the predicate: it would search for "
              "ever; check the predicate, or filter before repeat",
              label_, rejected_));
        continue;
      }
      rejected_ = 0;
      ++used_;
      *out = std::move(outcome.leaf);
      return true;
    }
    if (!fill()) return false;
  }
}

void EvaluatedStream::save(std::vector<uint64_t>* state) const {
  state->push_back(used_);
  state->push_back(rejected_);
  state->insert(state->end(), start_.begin(), start_.end());
}

// A position is (start of the chunk, place in it), whatever the number of threads. Where it was saved the
// chunk may have had more elements: of a narrower type, or by an older version.
void EvaluatedStream::restore(StateReader& state) {
  const uint64_t used = state.take();
  rejected_ = state.take();
  child_->restore(state);
  begin();
  uint64_t left = used;
  while (used <= kMostElements && left > outcomes_.size()) {
    left -= outcomes_.size();
    if (!fill()) break;
  }
  if (left > outcomes_.size())
    throw DataError(
        fmt::format("{}: the data cursor is damaged: there is no place {} in a chunk", label_, used));
  used_ = left;
}

bool EvaluatedStream::fill() {
  execution_->throw_if_stopped();
  outcomes_.clear();
  used_ = 0;
  start_.clear();
  child_->save(&start_);
  const size_t arity = child_->arity();
  leaves_.resize(chunk_ * arity);
  size_t count = 0;
  std::exception_ptr end;
  try {
    while (count < chunk_ && child_->next(&leaves_[count * arity])) ++count;
  } catch (...) {
    end = std::current_exception();
  }
  outcomes_.resize(count + (end ? 1 : 0));
  if (end) outcomes_.back().error = end;
  const auto judge_one = [&](size_t i) { judge(&leaves_[i * arity], &outcomes_[i]); };
  if (execution_->split_samples.load(std::memory_order_relaxed)) {
    for_each_sample(count, judge_one);
  } else {
    for (size_t i = 0; i < count; ++i) judge_one(i);
  }
  leaves_.clear();  // of a stream they hold its elements
  if (outcomes_.empty()) ahead_.resize(0);
  return !outcomes_.empty();
}

void EvaluatedStream::judge(const Leaf* leaves, Outcome* outcome) const {
  try {
    execution_->throw_if_stopped();
    auto payload = std::make_shared<Payload>();
    payload->value = evaluator_->make(leaves);
    evaluator_->append_names(leaves, &payload->names);
    payload->pass = evaluator_->pass_of(leaves);
    outcome->leaf = {leaves->index, leaves->epoch, nullptr};
    try {
      outcome->keep = !predicate_ || predicate_(payload->value);
    } catch (...) {
      rethrow_with_sample(label_, outcome->leaf);
    }
    payload->is_replaceable = is_replaceable_ && (!leaves->payload || leaves->payload->is_replaceable);
    if (outcome->keep) outcome->leaf.payload = std::move(payload);
  } catch (...) {
    outcome->error = std::current_exception();
  }
}

}  // namespace mox::data::internal
