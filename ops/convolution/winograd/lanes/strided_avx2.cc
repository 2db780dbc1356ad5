// Compiled for AVX2 and FMA: what every processor has that runs this library.
#include "ops/convolution/winograd/lanes/strided.h"

namespace mox::winograd {

const Kernels& strided_kernels_avx2(Step step, int64_t before) { return strided_kernels(step, before); }

}  // namespace mox::winograd
