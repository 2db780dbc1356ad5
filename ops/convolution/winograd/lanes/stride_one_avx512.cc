// Compiled with AVX-512 switched on; called only where the processor has it.
#include "ops/convolution/winograd/lanes/stride_one.h"

namespace mox::winograd {

const Kernels& kernels_avx512(int tile, int window) { return kernels(tile, window); }

}  // namespace mox::winograd
