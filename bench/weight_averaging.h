// The two methods that dimension-reduced training is compared with where a run has left snapshots.
//
//   stochastic weight averaging   Izmailov et al., "Averaging Weights Leads to Wider Optima and Better
//                                 Generalization", arXiv:1803.05407: the mean of the snapshots, whose batch
//                                 normalisation then takes its averages anew in a pass over the data
//   trainable weight averaging    Li, Huang, Tao, Liu, Huang, "Trainable Weight Averaging", arXiv:2205.13104:
//                                 training goes on from the mean, in the subspace that the snapshots span
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "moxing/boost/snapshots.h"
#include "moxing/moxing.h"

namespace bench {

// Writes a checkpoint under `log_dir`: that of `checkpoint`, whose trained variables are the mean of the
// snapshots `paths`. Throws what reading and writing them throw.
void write_averaged_checkpoint(const std::string& checkpoint, const std::vector<std::string>& paths,
                               const std::string& log_dir);

// After each step its change of the trained variables is cut down to the part that lies in the span of the
// snapshots `paths`. With momentum that is the momentum of the gradient's part, as projections are linear.
std::shared_ptr<mox::Hook> in_span_hook(const std::vector<std::string>& paths);

}  // namespace bench
