// Compiled with AVX-512 switched on; called only where the processor has it.
#include "ops/normalisation/internal/batch_norm_avx512.h"

#include "ops/normalisation/internal/batch_norm_channels_last.h"
#include "ops/normalisation/internal/batch_norm_planes.h"

namespace mox::normalisation {

const Loops<float> kFloatAvx512[2] = {loops_over_blocks<Avx512, float, 1>(),
                                      loops_over_pixels<Avx512, float>()};
const Loops<BFloat16> kBFloat16Avx512[2] = {loops_over_blocks<Avx512, BFloat16, 1>(),
                                            loops_over_pixels<Avx512, BFloat16>()};

}  // namespace mox::normalisation
