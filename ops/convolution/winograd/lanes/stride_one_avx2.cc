// Compiled for AVX2 and FMA: what every processor has that runs this library.
#include "ops/convolution/winograd/lanes/stride_one.h"

namespace mox::winograd {

const Kernels& kernels_avx2(int tile, int window) { return kernels(tile, window); }

}  // namespace mox::winograd
