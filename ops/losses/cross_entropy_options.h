#pragma once

namespace mox {

struct CrossEntropyOptions {
  // Moves this share of every label's mass evenly to all classes, in [0, 1): see smooth_labels.
  double label_smoothing = 0.0;
};

}  // namespace mox
