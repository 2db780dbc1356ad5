// Compiled for AVX2 and FMA: what every processor has that runs this library.
#include "ops/convolution/winograd/lanes/strided.h"

namespace mox::winograd {

const Kernels& strided_kernels_avx2(Stride stride, int64_t before) { return strided_kernels(stride, before); }

}  // namespace mox::winograd
