#include "moxing/engine/session/internal/training/label_mistakes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/job/job.h"

namespace mox::internal {
namespace {

constexpr double kMostLooks = 1000;            // steps
constexpr int64_t kLooksAtProbabilities = 10;  // which may be those of each pixel
// Fewer samples of one class may meet by chance, and so may fewer batches.
constexpr int64_t kFewestSamples = 8, kFewestBatches = 2;
// Batches where a class ends, or into which a small buffer has carried it: one for so many of one class.
constexpr int64_t kMostMixedShare = 2;

// The component of the data that a tensor is, in whatever shape and type.
std::optional<size_t> component_of(const Tensor& tensor) {
  const Node* node = tensor.node();
  for (;;) {
    const std::string_view op = node->op->name;
    if (op == "input") return node->attributes.get<int64_t>("component");
    if (op != "reshape" && op != "squeeze" && op != "expand_dims" && op != "cast") return std::nullopt;
    node = node->inputs[0].node();
  }
}

// sigmoid_cross_entropy is no op of its own: its labels are what it takes from 1.
bool is_of_negatives(const Node& node) {
  return node.op->name == "sub" && !node.traits.is_gradient &&
         node.name.find("sigmoid_cross_entropy/") != std::string::npos;
}

template <typename Function>
void for_each_number(const Array& array, Function function) {
  const auto all = [&](auto values) {
    for (const auto value : values) function(static_cast<double>(value));
  };
  if (array.dtype() == DType::kFloat32) all(array.values<float>());
  if (array.dtype() == DType::kInt32) all(array.values<int32_t>());
  if (array.dtype() == DType::kInt64) all(array.values<int64_t>());
  if (array.dtype() == DType::kUInt8) all(array.values<uint8_t>());
}

}  // namespace

LabelMistakes::LabelMistakes(const Graph& graph) {
  for (const auto& node : graph.nodes()) {
    const bool is_sparse = node->op->name == "sparse_softmax_cross_entropy",
               is_sigmoid = is_of_negatives(*node);
    if (!is_sparse && !is_sigmoid) continue;
    const auto component = component_of(node->inputs[1]);
    if (!component) continue;
    const Labels labels{*component, node->where};
    if (!classes_) classes_ = labels;
    if (is_sigmoid && !probabilities_) probabilities_ = labels;
  }
}

void LabelMistakes::note(const std::vector<Batch>& batches, double steps_per_epoch) {
  if (!classes_ && !probabilities_) return;
  for (const Batch& batch : batches) {
    if (probabilities_) look_at_probabilities(batch.components.at(probabilities_->component));
    if (classes_) look_at_classes(batch.components.at(classes_->component));
  }
  const double pass = steps_per_epoch > 0 ? std::ceil(steps_per_epoch) : kMostLooks;
  if (++steps_ >= kLooksAtProbabilities) probabilities_ = {};
  if (static_cast<double>(steps_) >= std::min(pass, kMostLooks)) classes_ = {};
}

void LabelMistakes::look_at_classes(const Array& labels) {
  const int64_t samples = labels.elements();
  if (samples < kFewestSamples || labels.shape()[0] != samples) return;  // one number a sample
  double least = INFINITY, largest = -INFINITY;
  for_each_number(labels, [&](double label) {
    least = std::min(least, label);
    largest = std::max(largest, label);
  });
  if (least == largest)
    ++batches_of_class_[static_cast<int64_t>(least)];
  else
    ++mixed_batches_;
  int64_t classes = 0, batches = 0;
  for (const auto& [label, count] : batches_of_class_) {
    batches += count;
    if (count >= kFewestBatches) ++classes;
  }
  if (classes < 2 || mixed_batches_ * kMostMixedShare > batches) return;
  if (job().rank() == 0)
    log_warning(fmt::format(
        "{} of the first {} batches have samples of one class alone, the labels of the loss at {}: "
        "the data come class by class, and what is learnt of one is lost with the next. Shuffle them "
        "in input_fn: .shuffle(n), n at least the number of samples, before .repeat()",
        batches, batches + mixed_batches_, to_string(classes_->where)));
  classes_ = {};
}

void LabelMistakes::look_at_probabilities(const Array& labels) {
  std::optional<double> wrong;
  for_each_number(labels, [&](double label) {
    if (!wrong && !(label >= 0 && label <= 1)) wrong = label;
  });
  if (!wrong) return;
  if (job().rank() == 0)
    log_warning(fmt::format(
        "the labels of sigmoid_cross_entropy at {} are to be 0, 1 or between these, and one is {:g}: "
        "where it is not masked, the loss is of nothing that was meant. Of -1 and 1 make 0 and 1 by "
        "(y + 1) / 2, of 1 and 2 by y - 1",
        to_string(probabilities_->where), *wrong));
  probabilities_ = {};
}

}  // namespace mox::internal
