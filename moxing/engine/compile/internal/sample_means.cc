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
    for (const auto& node : graph.nodes()) {
      parts_.push_back(part_of(*node));
      sum_divisors_.push_back(sum_divisor_of(*node));
    }
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
    if (part != Part::kRows) return part;
    // Of a normalisation in training the mean and the variance are of the batch.
    const bool is_of_batch = tensor.index() > 0 && tensor.node()->op->name == "batch_norm";
    return is_of_batch || !has_rows(tensor.shape()) ? Part::kMixed : part;
  }

  SumDivisor sum_divisor(const Tensor& tensor) const { return sum_divisors_[tensor.node()->id] / samples_; }

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
    if (op == "bias_add_gradient" || (op == "sum_to" && sums_rows(node))) return Part::kSum;
    if (joins_samples(node)) return Part::kMixed;
    // Products of one batch axis with another, as attention makes them, take each sample by itself.
    if (is_one_of(op, {"matmul", "matmul_bias"}) && node.outputs[0].shape.rank() > 2)
      return rows_have_rank(node, node.outputs[0].shape.rank()) ? Part::kRows : Part::kMixed;
    if (is_one_of(op, {"matmul", "matmul_bias", "conv2d", "conv2d_transpose"}) &&
        (inputs_of_rows > 1 || of(first) != Part::kRows))
      return Part::kMixed;
    if (node.outputs.size() == 1 && node.inputs.size() > 1 && !is_one_of(op, {"gather", "embedding_lookup"}))
      for (const Tensor& input : node.inputs)
        if (of(input) == Part::kRows && broadcasts(input.shape(), node.outputs[0].shape, op))
          return Part::kMixed;
    return Part::kRows;
  }

  // Whether an op over rows works along the axis of the samples, or leaves their order: its result may have
  // as many rows as there are samples, or a multiple of that, by chance (classes, that are segments).
  bool joins_samples(const Node& node) const {
    const std::string_view op = node.op->name;
    const Shape &x = node.inputs[0].shape(), &result = node.outputs[0].shape;
    const auto is_along_first_axis = [&] {
      return x.normalized_axis(node.attributes.get<int64_t>("axis")) == 0;
    };
    if (is_one_of(op, {"softmax", "log_softmax", "argmax"})) return is_along_first_axis();
    if (is_one_of(op, {"top_k", "take_along_last_axis", "scatter_along_last_axis"})) return x.rank() < 2;
    if (op == "gather") {
      const bool has_rows_of_indices = of(node.inputs[1]) == Part::kRows;
      return of(node.inputs[0]) == Part::kRows ? has_rows_of_indices || is_along_first_axis()
                                               : !is_along_first_axis();
    }
    if (op == "unsorted_segment_sum") return is_along_first_axis() || of(node.inputs[1]) == Part::kRows;
    if (op == "transpose") return node.attributes.get<std::vector<int64_t>>("permutation")[0] != 0;
    if (op == "matmul" && x.rank() == 2) return node.attributes.get<bool>("transpose_a");
    if (op == "pad") return result[0] != x[0];
    return op == "broadcast_to" && (result.rank() != x.rank() || result[0] != x[0]);
  }

  static bool sums_rows(const Node& node) {
    const Shape &x = node.inputs[0].shape(), &result = node.outputs[0].shape;
    return result.rank() < x.rank() || result[0] != x[0];
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
      if (part(0) == Part::kMean || part(1) == Part::kMean) return Part::kMean;
      return is_of_samples(divisor_of(node)) ? Part::kMean : Part::kSum;
    }
    if (op == "div" && part(1) == Part::kNothing) {
      if (part(0) == Part::kMean) return Part::kMean;
      return is_of_samples(divisor_of(node)) ? Part::kMean : Part::kSum;
    }
    return Part::kMixed;
  }

  bool is_of_samples(double divisor) const {
    const double each = divisor / samples_;
    return std::round(each) >= 1 && std::abs(each - std::round(each)) < 1e-6 * each;
  }

  // By which the sums in the node are divided, taken together; 0 if there are none.
  double sum_divisor_of(const Node& node) const {
    double divisor = 0;
    for (const Tensor& input : node.inputs) divisor += sum_divisors_[input.node()->id];
    if (divisor == 0) return parts_.back() == Part::kSum ? 1 : 0;
    const double constant = divisor_of(node);
    return constant == 0 ? divisor : divisor * std::abs(constant);
  }

  // The constant that a product or a quotient divides by; 0 if there is none.
  static double divisor_of(const Node& node) {
    if (node.op->name == "div") return constant_number(node.inputs[1]);
    if (node.op->name != "mul") return 0;
    for (const Tensor& input : node.inputs)
      if (const double factor = constant_number(input); factor != 0) return 1 / factor;
    return 0;
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
  std::vector<double> sum_divisors_;
};

}  // namespace

std::vector<std::optional<SumDivisor>> means_over_samples(const Graph& graph, std::span<const Tensor> values,
                                                          int64_t samples) {
  const PartsOfGraph parts(graph, samples);
  std::vector<std::optional<SumDivisor>> means;
  for (const Tensor& value : values) {
    const Part part = parts.of(value);
    const bool is_mean = part == Part::kMean || part == Part::kNothing;
    means.push_back(is_mean ? std::optional(parts.sum_divisor(value)) : std::nullopt);
  }
  return means;
}

const Node* first_of_all_pairs(const Graph& graph, int64_t samples) {
  const PartsOfGraph parts(graph, samples);
  const auto found =
      std::ranges::find_if(graph.nodes(), [&](const auto& node) { return parts.makes_pairs(*node); });
  return found == graph.nodes().end() ? nullptr : found->get();
}

}  // namespace mox::internal
