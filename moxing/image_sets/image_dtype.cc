#include "moxing/image_sets/image_dtype.h"

#include <optional>
#include <string>

#include "moxing/config/options.h"
#include "ops/fusion/default_rules.h"

namespace mox {

DType preferred_image_dtype() {
  const bool rounds = resolve<std::string>("precision", std::nullopt) == "bf16" &&
                      bfloat16_support() != BFloat16Support::kNone;
  return rounds ? DType::kBFloat16 : DType::kFloat32;
}

}  // namespace mox
