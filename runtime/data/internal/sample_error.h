// Says which sample an exception belongs to.
#pragma once

#include <string>

#include "runtime/data/internal/leaf.h"

namespace mox::data::internal {

// Call inside a catch block: throws the current exception again with its type kept and "<stage>, sample 17 of
// pass 0: " before its text. A type that is neither ours nor the standard library's cannot be rebuilt: it is
// thrown on unchanged and the sample is logged.
[[noreturn]] void rethrow_with_sample(const std::string& stage, const Leaf& leaf);

}  // namespace mox::data::internal
