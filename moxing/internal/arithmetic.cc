#include "moxing/internal/arithmetic.h"

#include "runtime/base/error.h"
#include "runtime/base/log.h"

namespace mox::internal {

Precision supported_precision(std::string_view name) {
  if (name == "fp32") return Precision::kFloat32;
  MOX_ASSERT(name == "bf16", "the option's values are checked where it is set");
  switch (bfloat16_support()) {
    case BFloat16Support::kNative:
      break;
    case BFloat16Support::kEmulated:
      log_warning(
          "bfloat16 is asked for (by precision, or a scope's force_dtype), but this processor has no "
          "instructions for bfloat16 (AVX512_BF16): products are computed through "
          "conversions to float32, which takes longer than precision fp32; it saves memory alone");
      break;
    case BFloat16Support::kNone:
      log_warning(
          "bfloat16 is asked for (by precision, or a scope's force_dtype), but this processor can compute "
          "nothing in bfloat16 (it has no AVX-512): float32 stands in for it, "
          "which takes twice the memory for activations and gives other digits than bf16 would");
      return Precision::kFloat32;
  }
  return Precision::kBFloat16;
}

}  // namespace mox::internal
