// What the ops over [batch, classes] predictions and [batch] labels share.
#pragma once

#include "runtime/graph/op.h"

namespace mox::internal {

// Fails the call unless input 0 is float32 [batch, classes] with classes >= 1, and input 1 is int32 or int64
// [batch]. The words name the two in messages ("logits", "labels").
void require_logits_and_labels(const OpCall& call, std::string_view logits, std::string_view labels);

// Fails the call unless inputs 0 and 1 are float32 of one shape [batch, classes] with classes >= 1.
void require_logits_and_distributions(const OpCall& call);

// Fails the call unless inputs 2 and 3 are what a cross entropy's gradient op gets beside logits and labels:
// float32 [2, batch] and [batch].
void require_statistics_and_loss_gradient(const OpCall& call);

// Fails the call unless the attribute "label_smoothing" lies in [0, 1).
void require_smoothing(const OpCall& call);
// The attribute "label_smoothing".
inline double smoothing_of(const Attributes& attributes) { return attributes.get<double>("label_smoothing"); }

// How many of a row's elements come before element `target` in a ranking by size, or -1 if one of them is not
// finite. Equal elements do not come before it; with `first_wins`, equal elements of lower index do.
int64_t elements_ranked_before(const float* row, int64_t length, int64_t target, bool first_wins);

}  // namespace mox::internal
