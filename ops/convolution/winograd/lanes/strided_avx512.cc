// Compiled with AVX-512 switched on; called only where the processor has it.
#include "ops/convolution/winograd/lanes/strided.h"

namespace mox::winograd {

const Kernels& strided_kernels_avx512(Stride stride, int64_t before) {
  return strided_kernels(stride, before);
}

}  // namespace mox::winograd
