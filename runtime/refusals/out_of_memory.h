// Memory that was refused, said as OutOfMemory with what was to be made and what bounds it: std::bad_alloc
// knows neither, RefusedMemory (runtime/tensor/refused_memory.h) only how much it was.
//
// Who calls what others have written (input_fn, model_fn, a hook), or makes something whose parts are many,
// catches it there, where it is known what is being made:
//
//   try {
//     return input_fn(mode);
//   } catch (...) {
//     rethrow_naming_memory([] { return "what input_fn(train) makes"; }, "keep less of the data in memory");
//   }
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/function_ref.h"

namespace mox::internal {

// Inside of a handler: in the place of std::bad_alloc and RefusedMemory throws OutOfMemory, "WHAT takes more
// memory than there is: ... ADVICE"; everything else, what is named already included, goes on as it is.
[[noreturn]] void rethrow_naming_memory(FunctionRef<std::string()> what, std::string_view advice);

// "the process holds 812 MiB (1930 MiB of addresses) of the 2048 MiB that it may have"
std::string memory_held();

}  // namespace mox::internal
