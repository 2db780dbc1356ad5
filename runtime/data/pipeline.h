// Pipeline: runs a Dataset whose elements are batches, ahead of its consumer and on several threads.
//
//   Pipeline pipeline(input_fn(mode).batch(100), {.seed = 7, .threads = 2});
//   Batch batch;
//   while (pipeline.next(&batch)) train(batch.components);
//
// A serial stage decides what goes into each batch, a parallel stage reads and maps samples straight into
// recycled batch buffers, a sequencer restores the order and a limiter bounds what is in flight (a oneTBB
// flow graph). Where a batch costs less than a hand-over between threads (rows of an array in their order,
// small copies) it is made in `next` itself. Neither order nor bits depend on any of this.
//
// Threads: one consumer at a time; `stop` may be called from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/base/source_location.h"
#include "runtime/data/dataset.h"
#include "runtime/data/memory_budget.h"

namespace mox {

struct PipelineOptions {
  uint64_t seed = 0;  // of every shuffle and every random map

  // Threads beside the consumer's: each reads, decodes and maps whole samples, so that one number is the
  // parallelism of all stages. 0: everything runs inside `next`. kAutomatic: chosen in the first seconds, as
  // few as keep the consumer from waiting, at most `most_threads` and not more than the memory budget has
  // batches for; the choice is logged.
  static constexpr int kAutomatic = -1;
  int threads = 1;
  int most_threads = 0;  // kAutomatic: 0 means the cores that the process may use

  // Finished batches that may wait for the consumer, beyond those being made.
  int prefetch_batches = 2;

  // Bound on batches in flight and on `cache` together; at least one batch is always allowed. 0: a quarter of
  // the memory that the process may have. `memory_budget`, where it is set, counts instead: one that several
  // pipelines share.
  size_t memory_budget_bytes = 0;
  std::shared_ptr<MemoryBudget> memory_budget = {};

  // The batches in groups of `group_size`, of which this pipeline delivers those at [group_first, group_first
  // + group_count) and passes over the others: the share of one of several processes. Passing over costs
  // nothing where positions are arithmetic; what lies below a filter or comes from a generator is computed by
  // each of them. A position at the end of a group is the same for all shares and all sizes of groups that
  // end there.
  int64_t group_size = 1, group_first = 0, group_count = 1;

  bool sample_names = false;  // whether Batch::names is filled
};

struct Batch {
  // Leading axis: the samples. 64-byte aligned memory that is recycled when the last copy of the array goes,
  // or, for rows of an in-memory array in their order, a view of the data set's own memory: do not
  // write to it.
  Element components;
  int64_t size = 0;    // samples; fewer than the batch size in a last, partial batch
  uint64_t epoch = 0;  // the pass that the first sample belongs to
  // With PipelineOptions::sample_names, what the source calls each sample (see RandomAccessSource::name);
  // empty if none has a name, or if batches are made by a source or a function of the program.
  std::vector<std::string> names = {};
};

struct PipelineStatistics {
  int64_t batches = 0, samples = 0, bytes = 0;  // delivered
  double wait_seconds = 0;                      // that the consumer spent in `next`
  // finished batches found waiting at a call of `next`, on average (threaded part only)
  double mean_queue_fill = 0;
  int in_flight_limit = 0;  // batches in flight at most
  int threads = 0;          // beside the consumer's, at present
  bool threaded = false;    // whether the flow graph is running (false: batches are made in `next`)
};

class Pipeline {
 public:
  // Every element of `dataset` is a batch: it ends with `batch` (perhaps followed by map, prefetch and the
  // like) or comes batched from its source. With a `cursor` of an earlier run it continues right after that
  // run's last batch, with the same bits. Throws InvalidArgument for options or data that cannot run,
  // DataError for a damaged cursor, FailedPrecondition (saying what differs) for one of another data
  // set or seed.
  Pipeline(Dataset dataset, const PipelineOptions& options, const std::string& cursor = {},
           SourceLocation where = SourceLocation::current());
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  // The next batch, or false after the last one (or after `stop`). Rethrows what a user's function or a
  // source threw, when the batch it belongs to is due and again on every later call.
  bool next(Batch* batch);

  // The position right after the last batch that `next` returned, as JSON text; the end of its group, if it
  // was the last of this pipeline's share. Batches that were prepared ahead do not count.
  std::string cursor() const;

  // Remembers the position where the consumer begins with batches that belong together, a step's say;
  // `marked_cursor` is the cursor there, also after `next` has thrown for one of them. Before the first call:
  // the position where the pipeline began.
  void mark();
  std::string marked_cursor() const;

  PipelineStatistics statistics() const;

  // Makes a waiting `next` and all later ones return false. The destructor does the same; both wait for user
  // functions that are running, not for more.
  void stop();

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace mox
