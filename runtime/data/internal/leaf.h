// A leaf names one sample without holding it: the serial stage of a pipeline works on leaves, the parallel
// stage turns them into data. Where the data exists already (a generator, a filter) the leaf carries it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/data/source.h"

namespace mox::data::internal {

struct Payload;

struct Leaf {
  uint64_t index = 0;  // of the sample in its source
  uint64_t epoch = 0;  // the pass it is visited in
  std::shared_ptr<const Payload> payload;
};

struct Payload {
  Element value;                   // of a generated or filtered element
  std::vector<std::string> names;  // of its samples, or none
  std::vector<Leaf> members;       // of a batch over a stream: the leaves of its elements
  uint64_t pass = 0;               // of a filtered element: that its first sample belongs to
  // Whether the leaf without its payload names the same element, which is then made again where it is needed.
  bool is_replaceable = false;
};

}  // namespace mox::data::internal
