#pragma once

#include "runtime/graph/tensor.h"

namespace mox {

// The rows of an embedding table that `ids` name: result[i..., :] = table[ids[i...], :].
//
//   table: [vocabulary, width], float32; ids: int32 or int64, any shape; result: [shape of ids..., width].
// Throws InvalidArgument from its shape rule, and while a plan runs for an id outside [0, vocabulary): the
// text names the id, its position and the size of the vocabulary. Gradient: for the table,
// unsorted_segment_sum (a dense [vocabulary, width]); none for ids.
Tensor embedding_lookup(const Tensor& table, const Tensor& ids,
                        SourceLocation where = SourceLocation::current());

}  // namespace mox
