// Compiled with AVX-512 switched on; called only where the processor has it.
#include "ops/internal/batch_norm_avx512.h"

#include "ops/internal/batch_norm_planes.h"

namespace mox::normalisation {

const Loops<float> kFloatAvx512[2] = {make_loops<Avx512, float, 1, false>(),
                                      make_loops<Avx512, float, 1, true>()};
const Loops<BFloat16> kBFloat16Avx512[2] = {make_loops<Avx512, BFloat16, 1, false>(),
                                            make_loops<Avx512, BFloat16, 1, true>()};

}  // namespace mox::normalisation
