// How much samples of each class count, in the loss and in the metrics of the pre-set job.
#pragma once

#include <moxing/moxing.h>

#include <string>
#include <vector>

namespace image_classifier {

// Declares the option class_weights. Call before mox::init.
void define_class_weight_flags();

// One weight a class, in the order of `label_names`: 1 for a class that the option does not name; empty where
// it names none. Throws InvalidArgument for a class that does not exist or comes twice, for a weight that is
// no number, below 0 or not finite, if no class counts, and with `has_many_labels`, where there is no class
// that a sample is of.
std::vector<double> class_weights(const std::vector<std::string>& label_names, bool has_many_labels);

// The cross entropy of each sample, times the weight of its class: float32 [batch]. `labels`: whole numbers
// [batch], or shares of the classes, float32 [batch, classes], as MixUp makes them: each share then counts as
// its class does, so that of a mixture with a class of weight 0 only the other is learnt.
mox::Tensor weighted_cross_entropy(const mox::Tensor& logits, const mox::Tensor& labels,
                                   const std::vector<double>& weights, double label_smoothing);

}  // namespace image_classifier
