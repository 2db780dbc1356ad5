// Compiled for AVX2 and FMA: what every processor has that runs this library.
#include "ops/convolution/lanes/filter_floats.h"

namespace mox::filter_conversion {

ConvertStrips float_converter_avx2(Conversion conversion, Writing writing) {
  return float_converter(conversion, writing);
}

}  // namespace mox::filter_conversion
