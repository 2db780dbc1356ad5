#include "runtime/data/internal/evaluated_stream.h"

#include <fmt/format.h>

#include "runtime/base/error.h"
#include "runtime/data/internal/operations/parallel.h"
#include "runtime/data/internal/sample_error.h"

namespace mox::data::internal {
namespace {

// Independent of the number of threads: a position is (start of the chunk, place in it).
constexpr size_t kChunk = 64;

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
      is_replaceable_(is_replaceable) {}

void EvaluatedStream::reset(uint64_t epoch) {
  child_->reset(epoch);
  outcomes_.clear();
  used_ = 0;
  rejected_ = 0;
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

void EvaluatedStream::restore(StateReader& state) {
  const uint64_t used = state.take();
  rejected_ = state.take();
  child_->restore(state);
  outcomes_.clear();
  used_ = 0;
  start_.clear();
  child_->save(&start_);
  if (used == 0) return;
  fill();
  if (used > outcomes_.size())
    throw DataError(fmt::format("{}: the data cursor is damaged: place {} in a chunk of {}", label_, used,
                                outcomes_.size()));
  used_ = used;
}

bool EvaluatedStream::fill() {
  execution_->throw_if_stopped();
  outcomes_.clear();
  used_ = 0;
  start_.clear();
  child_->save(&start_);
  const size_t arity = child_->arity();
  leaves_.resize(kChunk * arity);
  size_t count = 0;
  std::exception_ptr end;
  try {
    while (count < kChunk && child_->next(&leaves_[count * arity])) ++count;
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
