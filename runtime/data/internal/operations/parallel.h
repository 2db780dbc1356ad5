// A loop over samples, spread over the threads of the arena it runs in.
#pragma once

#include <cstddef>

#include "runtime/base/function_ref.h"

namespace mox::data::internal {

// body(i) for i in [0, count), in any order and from several threads. The body must not throw.
void for_each_sample(size_t count, FunctionRef<void(size_t)> body);

}  // namespace mox::data::internal
