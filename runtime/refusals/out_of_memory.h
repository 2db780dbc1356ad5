// std::bad_alloc, which says neither what was to be made nor what bounds it, said as OutOfMemory.
//
// Who calls what others have written (input_fn, model_fn, a hook), or makes something whose parts are many,
// catches it there, where it is known what is being made:
//
//   try {
//     return input_fn(mode);
//   } catch (const std::bad_alloc&) {
//     throw_out_of_memory("what input_fn(train) makes", "keep less of the data in memory");
//   }
#pragma once

#include <string>
#include <string_view>

namespace mox::internal {

// Throws OutOfMemory: "WHAT takes more memory than there is: the process holds ... ADVICE".
[[noreturn]] void throw_out_of_memory(std::string_view what, std::string_view advice);

// "the process holds 812 MiB (1930 MiB of addresses) of the 2048 MiB that it may have"
std::string memory_held();

}  // namespace mox::internal
