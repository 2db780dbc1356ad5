// What the ops that fill a tensor with random numbers share.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "runtime/base/random.h"
#include "runtime/graph/op.h"

namespace mox::internal {

// The stream of a node's values at a step: `node_key` is stable_hash(node.name).
inline RandomStream stream_of(uint64_t node_key, const KernelArguments& args) {
  return RandomStream(args.seed, mix_hash(node_key, args.step));
}

// The type given by the attribute "shape": float32.
std::vector<TensorType> random_type(const OpCall& call);

// A shape rule for attributes "mean" and "stddev".
std::vector<TensorType> infer_normal(const OpCall& call);

// Fills output 0; `fill(stream, elements, first)` writes the values at positions first, first + 1, ...
Kernel random_kernel(
    const Node& node,
    std::function<void(const RandomStream& stream, std::span<float> elements, uint64_t first)> fill);

}  // namespace mox::internal
