// Elements in order, one after another: the serial half of the algebra, for what has no positions
// (generators, filters, buffered shuffles). A stream belongs to the serial stage; it is not safe for threads.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/data/internal/indexed.h"
#include "runtime/data/internal/leaf.h"

namespace mox::data::internal {

// Hands out the numbers of a saved position in the order they were saved. Throws DataError past the end.
class StateReader {
 public:
  explicit StateReader(const std::vector<uint64_t>& state) : state_(state) {}
  uint64_t take();
  bool at_end() const { return next_ == state_.size(); }

 private:
  const std::vector<uint64_t>& state_;
  size_t next_ = 0;
};

class Stream {
 public:
  explicit Stream(int arity) : arity_(arity) {}
  virtual ~Stream() = default;

  int arity() const { return arity_; }

  // Goes to the start of pass `epoch`. Called before anything else.
  virtual void reset(uint64_t epoch) = 0;

  // Sets out[0 .. arity) to the next element's leaves, or returns false at the end of the pass
  // (and ever after).
  virtual bool next(Leaf* out) = 0;

  // The position in a few numbers, and back. restore() may replay; it throws DataError if there is
  // no such position.
  virtual void save(std::vector<uint64_t>* state) const = 0;
  virtual void restore(StateReader& state) = 0;

 private:
  int arity_;
};

// Walks over an Indexed.
class IndexedStream : public Stream {
 public:
  explicit IndexedStream(std::shared_ptr<const Indexed> indexed);
  void reset(uint64_t epoch) override;
  bool next(Leaf* out) override;
  void save(std::vector<uint64_t>* state) const override;
  void restore(StateReader& state) override;

 private:
  std::shared_ptr<const Indexed> indexed_;
  uint64_t epoch_ = 0;
  uint64_t position_ = 0;
};

}  // namespace mox::data::internal
