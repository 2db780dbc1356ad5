#include "moxing/layers/layers.h"
#include "ops/random/random.h"

namespace mox::layers {

Tensor dropout(const Tensor& x, float rate, ModeKeys mode, SourceLocation where) {
  return mox::dropout(x, rate, mode == ModeKeys::TRAIN, where);
}

}  // namespace mox::layers
