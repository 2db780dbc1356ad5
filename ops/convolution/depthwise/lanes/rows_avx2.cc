// Compiled for AVX2 and FMA: what every processor has that runs this library.
#include "ops/convolution/depthwise/lanes/rows.h"

namespace mox::depthwise {

const RowLoops kRowLoopsAvx2 = kRowLoops;

}  // namespace mox::depthwise
