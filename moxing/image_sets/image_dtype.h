// The type of a run's images.
#pragma once

#include "runtime/tensor/dtype.h"

namespace mox {

// The dtype in which a run wants its images (ImageOptions::dtype): kBFloat16 with `precision: bf16` on a
// processor that can compute in it, else kFloat32. A convolution or matrix product that is given float32
// images rounds them to the same bits, in a pass of its own over the batch; layers and the zoo's networks
// take either. A model that does something else with its images, or whose first layer stands in a scope of
// force_dtype kFloat32, computes with the rounded ones. Ask in input_fn or model_fn and not before mox::run,
// in which ranks agree on the instructions that they compute with: this fixes them
// (ops/processor/instruction_set.h). Throws FailedPrecondition before mox::init.
DType preferred_image_dtype();

}  // namespace mox
