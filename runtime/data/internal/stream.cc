#include "runtime/data/internal/stream.h"

#include <fmt/format.h>

#include "runtime/base/error.h"

namespace mox::data::internal {

uint64_t StateReader::take() {
  if (at_end()) throw DataError("the data cursor is damaged: its position has too few numbers");
  return state_[next_++];
}

IndexedStream::IndexedStream(std::shared_ptr<const Indexed> indexed)
    : Stream(indexed->arity()), indexed_(std::move(indexed)) {}

void IndexedStream::reset(uint64_t epoch) {
  epoch_ = epoch;
  position_ = 0;
}

bool IndexedStream::next(Leaf* out) {
  if (position_ == indexed_->size()) return false;
  indexed_->resolve(epoch_, position_++, 1, out, arity());
  return true;
}

void IndexedStream::save(std::vector<uint64_t>* state) const {
  state->push_back(epoch_);
  state->push_back(position_);
}

void IndexedStream::restore(StateReader& state) {
  epoch_ = state.take();
  position_ = state.take();
  if (position_ > indexed_->size())
    throw DataError(
        fmt::format("the data cursor is damaged: position {} of {}", position_, indexed_->size()));
}

}  // namespace mox::data::internal
