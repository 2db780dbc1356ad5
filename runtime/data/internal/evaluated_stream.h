// A stream whose leaves carry their data: it evaluates its input in chunks, in parallel, and passes on what a
// predicate keeps. Under filter and under a cache of something that has no positions.
//
// A chunk has up to 64 elements, of large ones as many as 64 MiB hold, and at least one. From the start of a
// pass to its end it counts in the memory budget.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/data/internal/element_evaluator.h"
#include "runtime/data/internal/stream.h"
#include "runtime/data/memory_budget.h"

namespace mox::data::internal {

class EvaluatedStream : public Stream {
 public:
  using Predicate = std::function<bool(const Element&)>;

  // A null `predicate` keeps all. More than `patience` refusals in a row throw FailedPrecondition: the search
  // through endless data must end. `is_replaceable`: who reads the leaves can make what they carry again,
  // from those of the input that carry nothing or what can be made again.
  EvaluatedStream(std::unique_ptr<Stream> child, std::shared_ptr<const ElementEvaluator> evaluator,
                  Predicate predicate, std::string label, std::shared_ptr<Execution> execution,
                  uint64_t patience, bool is_replaceable = false);

  void reset(uint64_t epoch) override;
  bool next(Leaf* out) override;
  void save(std::vector<uint64_t>* state) const override;
  void restore(StateReader& state) override;

 private:
  struct Outcome {
    Leaf leaf;
    bool keep = false;
    std::exception_ptr error;  // due when the elements before it are used up
  };

  void begin();  // at the position that the child has
  bool fill();   // evaluates the next chunk; false if there is none
  void judge(const Leaf* leaves, Outcome* outcome) const;

  std::unique_ptr<Stream> child_;
  std::shared_ptr<const ElementEvaluator> evaluator_;
  Predicate predicate_;
  std::string label_;
  std::shared_ptr<Execution> execution_;
  uint64_t patience_;
  bool is_replaceable_;
  const size_t element_bytes_, chunk_;  // of the type alone: see restore
  MemoryBudget::Share ahead_;
  std::vector<Leaf> leaves_;
  std::vector<Outcome> outcomes_;
  size_t used_ = 0;
  uint64_t rejected_ = 0;        // in a row
  std::vector<uint64_t> start_;  // the child's position before the chunk
};

}  // namespace mox::data::internal
