// Compiled for AVX2 and FMA: what every processor has that runs this library.
#include "ops/convolution/winograd/lanes/wide.h"

namespace mox::winograd {

const WideKernels& wide_kernels_avx2() { return kKernels; }

}  // namespace mox::winograd
