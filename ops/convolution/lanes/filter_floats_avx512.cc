// Compiled with AVX-512 switched on; called only where the processor has it.
#include "ops/convolution/lanes/filter_floats.h"

namespace mox::filter_conversion {

ConvertStrips float_converter_avx512(Conversion conversion, Writing writing) {
  return float_converter(conversion, writing);
}

}  // namespace mox::filter_conversion
