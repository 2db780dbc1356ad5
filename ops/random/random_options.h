// What the random ops share: where their numbers come from.
//
// The values of a random op are a pure function of (seed of the run, name of the node, global step, position
// of the element): the same on any number of threads, and again after a restart from a checkpoint. They
// change with every step. Two nodes of a graph have different names, hence different values. The numbers are
// those of mox::RandomStream with the key mix_hash(stable_hash(name), step).
#pragma once

namespace mox {

struct RandomNormalOptions {
  double mean = 0.0;
  double stddev = 1.0;  // >= 0
};

struct RandomUniformOptions {
  double low = 0.0;
  double high = 1.0;  // > low
};

}  // namespace mox
