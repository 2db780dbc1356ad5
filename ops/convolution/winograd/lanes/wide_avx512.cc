// Compiled with AVX-512 switched on; called only where the processor has it.
#include "ops/convolution/winograd/lanes/wide.h"

namespace mox::winograd {

const WideKernels& wide_kernels_avx512() { return kKernels; }

}  // namespace mox::winograd
