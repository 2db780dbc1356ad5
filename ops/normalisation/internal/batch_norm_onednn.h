// What the batch normalisation ops share.
#pragma once

#include "ops/normalisation/normalisation.h"
#include "ops/processor/onednn.h"

namespace mox {

// Checks that input 0 is an image or a matrix and that each of the inputs `per_channel` is float32
// [channels].
void check_batch_norm(const OpCall& call, std::initializer_list<int> per_channel);
// The attribute "epsilon".
inline double epsilon_of(const Node& node) { return node.attributes.get<double>("epsilon"); }

namespace onednn {

// The normalisation of x in `layout`. A matrix is an image of one pixel.
struct BatchNormDescriptors {
  BatchNormDescriptors(const TensorType& x, const Layout& layout);

  Layout layout;  // the one asked for, or plain if oneDNN does not know it
  dnnl::memory::desc x, per_channel;
};

// Inference: mean and variance are given.
dnnl::batch_normalization_forward::primitive_desc describe_batch_norm(const BatchNormDescriptors& descriptors,
                                                                      double epsilon);

}  // namespace onednn
}  // namespace mox
