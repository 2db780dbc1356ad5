// Kernels that cut a sum by the size of the team: floating-point addition is not associative, so their bits
// depend on the number of threads. Most do not; whoever makes one that does says so here, and the printed
// plan marks it.
//
// The mark is the end of Kernel::implementation, where each form of a kernel (its form in parts, too) has
// its own.
#pragma once

#include "runtime/graph/kernel.h"

namespace mox {

void mark_bits_by_threads(Kernel& kernel);
bool has_bits_by_threads(const Kernel& kernel);

}  // namespace mox
