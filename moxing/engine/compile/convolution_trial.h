// conv_algorithm measured: which convolutions the direct sum computes faster than Winograd's method on this
// machine. What decides that, the rates at which a machine multiplies and moves what lies in which cache, is
// measured by the convolutions themselves: one of each class, with its gradients, in both ways.
#pragma once

#include <string_view>

#include "ops/convolution/winograd/convolution_class.h"
#include "ops/fusion/default_rules.h"
#include "runtime/base/team.h"
#include "runtime/comm/communicator.h"

namespace mox::internal {

// Those of the classes that Winograd's kernels compute in this precision of which the direct sum took less
// than nine tenths of their time: Winograd's kernels do the normalisation around them besides, which is not
// in these times. Each takes the least of some turns. Some seconds of the whole team.
ConvolutionClasses measured_direct_classes(Precision precision, const Team& team);

// The classes that a training takes: those which the checkpoint that it goes on from was computed with, where
// `kept`, its description_of, names them; else what rank 0 measures with so many threads. All ranks call it
// together and get the same. Logs them.
ConvolutionClasses settled_direct_classes(Communicator& ranks, Precision precision, std::string_view kept,
                                          int threads);

}  // namespace mox::internal
