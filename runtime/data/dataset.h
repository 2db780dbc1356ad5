// Dataset: a description of a sequence of samples, written as a chain of operations:
//
//   Dataset::from_arrays({images, labels}).shuffle(60000).repeat().map(augment).batch(100)
//
// A Dataset is an immutable handle: every operation returns a new one, copying is cheap, and nothing is read
// until a Pipeline (runtime/data/pipeline.h) runs it. Sharing between threads is safe.
//
// Order. The sequence of elements, and every bit of them, is a function of the data set and the pipeline's
// seed, never of the number of threads. Each pass under `repeat` shuffles anew, keyed by (seed, epoch).
//
// Positions. Over random-access sources, shuffle, shard, repeat, take, skip, zip, map, cache and batch are
// arithmetic on positions: resuming in the middle of an epoch reads nothing that came before. A shuffle with
// a buffer smaller than its data, or over an interleave, replays positions; a generator is replayed from the
// start of its pass; a filter replays a short chunk.
//
// Errors. A wrong argument or an order of operations that cannot work throws InvalidArgument with the user's
// file and line. An exception from a user's function comes out of Pipeline::next with its type kept.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "runtime/base/source_location.h"
#include "runtime/data/source.h"
#include "runtime/tensor/array.h"

namespace mox {

namespace data::internal {
class Node;
}

class Dataset {
 public:
  using Where = SourceLocation;

  static constexpr int64_t kInfinite = -1;  // of cardinality() and repeat(): without end
  static constexpr int64_t kUnknown = -2;   // of cardinality() and epoch_size(): not known before running

  // One sample a row of the first axis, which all arrays share. The arrays are shared, not copied:
  // leave them unchanged.
  static Dataset from_arrays(std::vector<Array> arrays, Where where = Where::current());
  static Dataset from_source(std::shared_ptr<const RandomAccessSource> source,
                             Where where = Where::current());

  // `factory` starts a pass; the elements must have the types `signature`. A pass must give the same elements
  // each time for the same PassContext: resuming replays it.
  static Dataset from_generator(std::vector<TensorType> signature, std::function<Generator()> factory,
                                Where where = Where::current());
  static Dataset from_generator(std::vector<TensorType> signature,
                                std::function<Generator(const PassContext&)> factory,
                                Where where = Where::current());
  // With the number of elements of a pass (or kInfinite), so that epochs have a length: schedules in epochs,
  // max_epochs and progress work. A pass that gives another number ends the run with DataError.
  static Dataset from_generator(std::vector<TensorType> signature, std::function<Generator()> factory,
                                int64_t size, Where where = Where::current());
  static Dataset from_generator(std::vector<TensorType> signature,
                                std::function<Generator(const PassContext&)> factory, int64_t size,
                                Where where = Where::current());

  // Elements side by side: components are concatenated; ends with the shortest. To shuffle zipped data,
  // shuffle after.
  static Dataset zip(const std::vector<Dataset>& datasets, Where where = Where::current());

  // Elements of several data sets of one type, for example a file each, in turn: `cycle` of them are open at
  // a time, and each gives `block` elements in its turn. One that has ended leaves its place to the next of
  // the list. The order is fixed; resuming replays what resuming the open ones replays.
  static Dataset interleave(const std::vector<Dataset>& datasets, int64_t cycle = 16, int64_t block = 1,
                            Where where = Where::current());

  // `function` is called from several threads at once and must depend on its arguments only; all results have
  // the types of the first. Without a signature, the function runs once on the first element when the
  // type is needed.
  Dataset map(std::function<Element(const Element&)> function, Where where = Where::current()) const;
  Dataset map(std::function<Element(const SampleContext&, const Element&)> function,
              Where where = Where::current()) const;
  Dataset map(std::vector<TensorType> signature,
              std::function<Element(const SampleContext&, const Element&)> function,
              Where where = Where::current()) const;
  // The fast form: `function` fills `outputs`, arrays of the types `signature` that lie in the batch itself.
  Dataset map_into(
      std::vector<TensorType> signature,
      std::function<void(const SampleContext&, const Element&, std::span<Array> outputs)> function,
      Where where = Where::current()) const;

  // Keeps the elements for which `predicate` is true. Called from several threads at once.
  Dataset filter(std::function<bool(const Element&)> predicate, Where where = Where::current()) const;

  // A buffer of at least the size of the data (where that is known and random access works) gives a uniform
  // permutation at no cost in memory. A smaller one works as TensorFlow's: each element is drawn from a
  // window of `buffer_size`, which counts in the memory budget of the pipelines: where it does not fit, the
  // pipeline throws FailedPrecondition.
  Dataset shuffle(int64_t buffer_size, Where where = Where::current()) const;

  // The same, in one order for all passes and all pipelines, of `seed` alone: what take, skip and
  // shard stand on.
  Dataset shuffle_once(int64_t buffer_size, uint64_t seed, Where where = Where::current()) const;

  // Two parts without a common sample, such as training and validation: the first holds round(`fraction` * n)
  // of the n samples (0 < fraction < 1), chosen by `seed`, in their order in the data; the second holds the
  // others. The same in every process and at every start. Shuffle each part afterwards. Throws
  // InvalidArgument for data without a known, finite size or whose order changes, and where a part
  // would be empty.
  struct Split;  // below
  Split split(double fraction, uint64_t seed, Where where = Where::current()) const;

  // By class: the same share of each. `label` is the component of one whole number (int32, int64, uint8,
  // bool, or float32) that is a sample's class. Reads all samples once. A class of one sample goes to the
  // first part.
  Split split(double fraction, uint64_t seed, size_t label, Where where = Where::current()) const;

  // `count` passes, or passes without end. A shuffle below take, skip or shard gives each pass other samples:
  // refused (see shuffle_once and split). An endless repeat of empty data throws
  // FailedPrecondition when run.
  Dataset repeat(int64_t count = kInfinite, Where where = Where::current()) const;

  // Stacks `size` elements along a new first axis. The last one of a pass has fewer rows, or is dropped.
  Dataset batch(int64_t size, bool drop_remainder = false, Where where = Where::current()) const;

  // Elements index, index + count, index + 2 count, ...
  Dataset shard(int64_t index, int64_t count, Where where = Where::current()) const;

  // Of a pass; of data with `repeat` below, of all passes. Where no repeat lies between, a shuffle below
  // take, skip or shard has one order, whatever the seed: what take keeps and what skip leaves never meet.
  Dataset take(int64_t count, Where where = Where::current()) const;
  Dataset skip(int64_t count, Where where = Where::current()) const;

  // Keeps the elements in memory as they are first computed. What lies below runs once, for pass 0: its
  // shuffles and random maps are frozen. Pipelines with the same seed share the memory, which lives as long
  // as a Dataset refers to it.
  Dataset cache(Where where = Where::current()) const;

  // At least `count` elements are prepared ahead of the consumer (batches, when written after `batch`).
  Dataset prefetch(int64_t count, Where where = Where::current()) const;

  // The types of one element's components. Above `batch` the first extent is the full batch's. May run a map
  // function once, on the first element (see map).
  const std::vector<TensorType>& signature() const;

  int64_t cardinality() const;  // elements in total, kInfinite or kUnknown
  int64_t epoch_size() const;   // elements of one pass below the repeats (all, if there is none), or kUnknown

  // The chain of operations in a line, for logs and cursors.
  std::string describe() const;

  const std::shared_ptr<const data::internal::Node>& node() const { return node_; }

 private:
  explicit Dataset(std::shared_ptr<const data::internal::Node> node) : node_(std::move(node)) {}

  std::shared_ptr<const data::internal::Node> node_;
};

struct Dataset::Split {
  Dataset first, second;
};

}  // namespace mox
