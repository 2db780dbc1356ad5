// Memory of an array that nobody has named yet: the text says how much was asked for, not what for and which
// option bounds it. Who knows that says it as OutOfMemory (runtime/refusals/out_of_memory.h).
#pragma once

#include "runtime/base/error.h"

namespace mox::internal {

class RefusedMemory : public OutOfMemory {
 public:
  using OutOfMemory::OutOfMemory;
};

}  // namespace mox::internal
