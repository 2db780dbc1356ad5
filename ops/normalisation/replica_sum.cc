#include <algorithm>

#include "ops/normalisation/normalisation.h"
#include "runtime/graph/op.h"
#include "runtime/graph/replica_exchange.h"

namespace mox {
namespace {

// Like a random op it is no function of its inputs alone: the compiler neither folds it nor makes one of two.
constexpr Op::Kind kNotPure = Op::Kind::kRandom;

std::vector<TensorType> infer_replica_sum(const OpCall& call) {
  call.require(call.dtype(0) == DType::kFloat32, "float32 [...]");
  return {call.type(0)};
}

Kernel compile_exchange(const KernelRequest& request, ReplicaExchange::Of of) {
  const size_t elements = request.node.outputs[0].shape.elements();
  return plain_kernel(
      request.node,
      [name = request.node.name, elements, of](const KernelArguments& arguments) {
        float* values = arguments.output<float>(0);
        std::copy_n(arguments.input<float>(0), elements, values);
        if (ReplicaExchange* exchange = entered_exchange()) exchange->sum(name, {values, elements}, of);
      },
      "exchange");
}

// The sum of gradients is turned by the shares of the replicas into the one that sums values, and back.
std::vector<Tensor> gradient_of_replica_sum_gradient(const GradientCall& call) {
  return {replica_sum(call.gradient(), call.node.where)};
}

const Op& gradient_op() {
  static const Op op{.name = "replica_sum_gradient",
                     .kind = kNotPure,
                     .infer = infer_replica_sum,
                     .gradient = gradient_of_replica_sum_gradient,
                     .compile = [](const KernelRequest& request) {
                       return compile_exchange(request, ReplicaExchange::Of::kGradients);
                     }};
  return op;
}

std::vector<Tensor> gradient_of_replica_sum(const GradientCall& call) {
  return {make_tensor(gradient_op(), {call.gradient()}, {}, call.node.where)};
}

const Op kReplicaSum{.name = "replica_sum",
                     .kind = kNotPure,
                     .infer = infer_replica_sum,
                     .gradient = gradient_of_replica_sum,
                     .compile = [](const KernelRequest& request) {
                       return compile_exchange(request, ReplicaExchange::Of::kValues);
                     }};

}  // namespace

Tensor replica_sum(const Tensor& x, SourceLocation where) { return make_tensor(kReplicaSum, {x}, {}, where); }

}  // namespace mox
