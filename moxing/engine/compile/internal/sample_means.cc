#include "moxing/engine/compile/internal/sample_means.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

namespace mox::internal {
namespace {

// How a tensor depends on the batch.
enum class Part {
  kNothing,  // the same for every batch
  kRows,     // the first axis are the samples, or a fixed number of entries for each of them in turn
  kSum,      // a sum over the samples, times a constant
  kMean,     // a mean over the samples
  kMixed,    // anything else
};

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

// Of several operands, which are broadcast to one shape.
constexpr std::string_view kElementwise[] = {
    "add",       "sub",  "mul",        "div",     "pow",           "maximum", "minimum",     "equal",
    "not_equal", "less", "less_equal", "greater", "greater_equal", "select",  "logical_and", "logical_or"};

bool is_elementwise(std::string_view op) {
  return std::ranges::find(kElementwise, op) != std::end(kElementwise);
}

class PartsOfGraph {
 public:
  PartsOfGraph(const Graph& graph, int64_t samples) : samples_(samples) {
    for (const auto& node : graph.nodes()) parts_.push_back(part_of(*node));
  }

  // See first_of_all_pairs.
  bool makes_pairs(const Node& node) const {
    if (samples_ < 2 || !is_elementwise(node.op->name)) return false;
    bool any_row = false, any_column = false;
    for (const Tensor& input : node.inputs) {
      if (of(input) != Part::kRows) continue;
      any_row |= input.shape() == Shape{samples_};
      any_column |= input.shape() == Shape{samples_, 1};
    }
    return any_row && any_column;
  }

  Part of(const Tensor& tensor) const {
    const Part part = parts_[tensor.node()->id];
    return part == Part::kRows && !has_rows(tensor.shape()) ? Part::kMixed : part;
  }

 private:
  bool has_rows(const Shape& shape) const {
    return shape.rank() > 0 && samples_ > 0 && shape[0] % samples_ == 0;
  }

  Part part_of(const Node& node) const {
    if (node.op->kind == Op::Kind::kInput) return Part::kRows;
    bool any_rows = false, any_whole = false;  // whole: sums and means
    for (const Tensor& input : node.inputs) {
      const Part part = of(input);
      if (part == Part::kMixed) return Part::kMixed;
      any_rows |= part == Part::kRows;
      any_whole |= part == Part::kSum || part == Part::kMean;
    }
    if (any_rows) return any_whole ? Part::kMixed : of_rows(node);
    return any_whole ? of_whole(node) : Part::kNothing;
  }

  // A node over rows and what does not depend on the batch.
  Part of_rows(const Node& node) const {
    const std::string_view op = node.op->name;
    const auto inputs_of_rows =
        std::ranges::count_if(node.inputs, [&](const Tensor& input) { return of(input) == Part::kRows; });
    const Tensor& first = node.inputs[0];
    if (is_one_of(op, {"reduce_mean", "reduce_sum", "reduce_max", "reduce_min"})) {
      if (!reduces_rows(node)) return Part::kRows;
      return op == "reduce_mean" ? Part::kMean : op == "reduce_sum" ? Part::kSum : Part::kMixed;
    }
    if (op == "accuracy") return Part::kMean;
    if (op == "transpose" && node.attributes.get<std::vector<int64_t>>("permutation")[0] != 0)
      return Part::kMixed;
    if (op == "gather" && of(first) == Part::kRows && node.attributes.get<int64_t>("axis") == 0)
      return Part::kMixed;
    // Over the last axis, which is that of the samples.
    if (is_one_of(op, {"softmax", "log_softmax", "top_k", "argmax"}) && first.shape().rank() < 2)
      return Part::kMixed;
    // Products of one batch axis with another, as attention makes them, take each sample by itself.
    if (is_one_of(op, {"matmul", "matmul_bias"}) && node.outputs[0].shape.rank() > 2)
      return rows_have_rank(node, node.outputs[0].shape.rank()) ? Part::kRows : Part::kMixed;
    if (is_one_of(op, {"matmul", "matmul_bias", "conv2d"}) &&
        (inputs_of_rows > 1 || of(first) != Part::kRows))
      return Part::kMixed;
    if (node.outputs.size() == 1 && node.inputs.size() > 1 && !is_one_of(op, {"gather", "embedding_lookup"}))
      for (const Tensor& input : node.inputs)
        if (of(input) == Part::kRows && broadcasts(input.shape(), node.outputs[0].shape, op))
          return Part::kMixed;
    return Part::kRows;
  }

  bool rows_have_rank(const Node& node, int rank) const {
    return std::ranges::all_of(node.inputs, [&](const Tensor& input) {
      return of(input) != Part::kRows || input.shape().rank() == rank;
    });
  }

  // Whether an element-wise op would put the axis of the samples beside another one.
  static bool broadcasts(const Shape& input, const Shape& output, std::string_view op) {
    return is_elementwise(op) && input.rank() != output.rank();
  }

  static bool reduces_rows(const Node& node) {
    const auto& axes = node.attributes.get<std::vector<int64_t>>("axes");
    const int rank = node.inputs[0].shape().rank();
    return axes.empty() ||
           std::ranges::any_of(axes, [&](int64_t axis) { return axis == 0 || axis == -rank; });
  }

  // A node over sums, means and what does not depend on the batch: linear ones keep what it is.
  Part of_whole(const Node& node) const {
    const std::string_view op = node.op->name;
    const auto part = [&](size_t i) { return of(node.inputs[i]); };
    if (is_one_of(op, {"neg", "reshape", "squeeze", "expand_dims", "stop_gradient", "reduce_sum",
                       "reduce_mean", "broadcast_to", "transpose", "slice"}) ||
        (op == "cast" && is_floating(node.outputs[0].dtype)))
      return part(0);
    if (is_one_of(op, {"add", "sub"})) {
      const bool means = std::ranges::all_of(node.inputs, [&](const Tensor& input) {
        return of(input) == Part::kMean || of(input) == Part::kNothing;
      });
      return means || part(0) == part(1) ? part(0) == Part::kSum ? Part::kSum : Part::kMean : Part::kMixed;
    }
    if (op == "mul") {
      if (part(0) != Part::kNothing && part(1) != Part::kNothing) return Part::kMixed;
      const size_t whole = part(0) == Part::kNothing ? 1 : 0;
      if (part(whole) == Part::kMean) return Part::kMean;
      const double factor = constant_number(node.inputs[1 - whole]);
      return factor != 0 && divides_by_samples(1 / factor) ? Part::kMean : Part::kSum;
    }
    if (op == "div" && part(1) == Part::kNothing) {
      if (part(0) == Part::kMean) return Part::kMean;
      return divides_by_samples(constant_number(node.inputs[1])) ? Part::kMean : Part::kSum;
    }
    return Part::kMixed;
  }

  bool divides_by_samples(double divisor) const {
    const double each = divisor / samples_;
    return std::round(each) >= 1 && std::abs(each - std::round(each)) < 1e-6 * each;
  }

  // 0 for what is no constant of one number.
  static double constant_number(const Tensor& tensor) {
    const Node& node = *tensor.node();
    if (node.op->kind == Op::Kind::kConstant && tensor.shape().elements() == 1)
      return node.attributes.get<Array>("value").item();
    return 0;
  }

  int64_t samples_;
  std::vector<Part> parts_;
};

}  // namespace

std::vector<bool> are_means_over_samples(const Graph& graph, std::span<const Tensor> values,
                                         int64_t samples) {
  const PartsOfGraph parts(graph, samples);
  std::vector<bool> are_means;
  for (const Tensor& value : values) {
    const Part part = parts.of(value);
    are_means.push_back(part == Part::kMean || part == Part::kNothing);
  }
  return are_means;
}

const Node* first_of_all_pairs(const Graph& graph, int64_t samples) {
  const PartsOfGraph parts(graph, samples);
  const auto found =
      std::ranges::find_if(graph.nodes(), [&](const auto& node) { return parts.makes_pairs(*node); });
  return found == graph.nodes().end() ? nullptr : found->get();
}

}  // namespace mox::internal
