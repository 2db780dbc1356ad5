// The models that bench_small measures.
#pragma once

#include <string>

#include "moxing/engine/session/run.h"

namespace bench {

struct SmallCase {
  std::string name;
  int64_t batch_size = 0;  // unless the command line says otherwise
  int64_t steps = 0;       // timed, unless the command line says otherwise
  mox::Shape image_shape;  // of one sample
  mox::ModelFn model_fn;
  mox::OptimizerFn optimizer_fn;
  // Of the mathematics, whatever an implementation does: matrix products and convolutions, forward, for the
  // weights, and for the inputs where a gradient is needed. A multiply-add counts as two.
  double floating_point_operations_per_sample = 0;
};

// "softmax" or "lenet"; throws NotFound for another name.
SmallCase small_case(const std::string& name);

}  // namespace bench
