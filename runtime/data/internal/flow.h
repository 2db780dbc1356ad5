// The oneTBB flow graph of a pipeline:
//
//   produce (serial) -> limiter -> evaluate (parallel) -> sequencer -> queue -> consumer
//                          ^------------- one more may start ------------'
//
// A thread of the graph's own takes part in its arena, so that it advances even where oneTBB has no worker to
// give (one core, a program that limits it, a system that refuses more threads).
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/data/internal/leaf.h"

namespace mox::data::internal {

// One batch on its way.
struct Ticket {
  uint64_t sequence = 0;
  std::vector<Leaf> leaves;
  std::vector<uint64_t> state;  // the position after this batch
  Element element;
  std::vector<std::string> names;  // of the samples, where they are asked for
  uint64_t epoch = 0;
  std::exception_ptr error;
  bool end = false;    // nothing follows, and this holds no batch
  bool pause = false;  // with `end`: the flow ends here, the data do not
};

class Flow {
 public:
  // `produce` is called by one thread at a time until it sets `end` or `error`; `evaluate` by several.
  // Neither throws. `limit` >= 1 batches are in flight: being evaluated, finished, or held by the consumer.
  Flow(std::function<void(Ticket&)> produce, std::function<void(Ticket&)> evaluate, int threads, int limit);
  ~Flow();  // waits for bodies that are running

  // The next ticket in order; null after `stop`. To be given back by `release` before the next `take`.
  Ticket* take();
  void release(Ticket* ticket);

  size_t waiting() const;  // finished batches in the queue
  void stop();             // any thread
  // Why fewer than `threads` evaluate, where the system refuses more; "" if it does not.
  std::string refusal() const;

 private:
  struct Graph;
  std::unique_ptr<Graph> graph_;
};

}  // namespace mox::data::internal
