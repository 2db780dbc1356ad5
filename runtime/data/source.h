// What a data set is made of: random-access sources and generators.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/random.h"
#include "runtime/tensor/array.h"

namespace mox {

// One sample (or one batch, above `batch`): its components, for example {image, label}.
using Element = std::vector<Array>;

// All that a random decision about a sample may depend on. The same triple gives the same numbers on any
// number of threads and ranks and after a resume.
struct SampleContext {
  uint64_t seed = 0;    // of the pipeline, mixed with the stage: two stages draw different numbers
  uint64_t epoch = 0;   // the pass over the data, counted from 0 by the repeat around it
  uint64_t sample = 0;  // the sample's index in its source, whatever the order it is visited in

  RandomStream random() const { return RandomStream(seed, mix_hash(epoch, sample)); }
};

// Samples that can be read in any order, all of one type. Implementations are immutable: every function is
// called from several threads at once.
class RandomAccessSource {
 public:
  virtual ~RandomAccessSource() = default;

  virtual int64_t size() const = 0;                              // number of samples
  virtual const std::vector<TensorType>& signature() const = 0;  // the components of one sample

  // Writes component c of sample `index` (0 <= index < size()) to components[c], signature()[c].bytes()
  // bytes: mostly straight into a batch. Random augmentation may use `context` and nothing else.
  virtual void read(int64_t index, const SampleContext& context,
                    std::span<std::byte* const> components) const = 0;

  // What a person calls the sample, mostly the path of its file; "" if it has no name.
  virtual std::string name(int64_t /*index*/) const { return ""; }

  // A checksum of what the sample is made from, before any augmentation: those of a few samples tell other
  // contents under the same names. The default reads the sample.
  virtual uint32_t content_checksum(int64_t index) const;

  // A hint that `index` is read soon.
  virtual void will_read(int64_t /*index*/) const {}

  // If samples [first, first + count) lie side by side in memory in their final form: sets `*rows` to arrays
  // over that memory with a leading axis of `count`, and returns true.
  virtual bool view(int64_t /*first*/, int64_t /*count*/, std::vector<Array>* /*rows*/) const {
    return false;
  }

  // What reading has shown about samples that a job of several ranks counts together, such as those that
  // cannot be read: what is new since the last call, "" if nothing is. Text for add_findings of the same
  // source in the other ranks.
  virtual std::string take_findings() const { return ""; }
  // What another rank's source has taken. Throws what `read` throws where the counts of all ranks are above a
  // limit, and DataError for what the same source cannot have found.
  virtual void add_findings(std::string_view /*findings*/) const {}

  // Kind and content in a line, without directories ("idx 60000 x uint8[28, 28], crc 1a2b3c4d"): part of a
  // cursor's fingerprint, so two sources of different content should differ here where that is cheap to know.
  virtual std::string describe() const = 0;
};

// One pass over generated data: sets `*element` and returns true, or returns false at the end of the pass.
// Called from one thread at a time.
using Generator = std::function<bool(Element* element)>;

// What a pass of a generator may depend on.
struct PassContext {
  uint64_t seed = 0;
  uint64_t epoch = 0;
};

}  // namespace mox
