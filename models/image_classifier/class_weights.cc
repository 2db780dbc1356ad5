#include "models/image_classifier/class_weights.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace image_classifier {
namespace {

struct NamedWeight {
  std::string name;
  double weight = 1;
};

// Of "NAME=WEIGHT"; a name may have '=' in it.
NamedWeight named_weight(const std::string& text) {
  const size_t equals = text.rfind('=');
  if (equals == std::string::npos)
    throw mox::InvalidArgument("class_weights: '" + text +
                               "' has no '='; write CLASS=WEIGHT, such as daisy=2.5");
  NamedWeight result{.name = text.substr(0, equals)};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + equals + 1, end, result.weight);
  if (error != std::errc() || stop != end || !std::isfinite(result.weight) || result.weight < 0)
    throw mox::InvalidArgument("class_weights: the weight of '" + result.name + "' is '" +
                               text.substr(equals + 1) + "'; it must be a finite number of at least 0");
  return result;
}

std::string listed(const std::vector<std::string>& names) {
  constexpr size_t kShown = 20;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i) text += (i > 0 ? ", " : "") + names[i];
  return names.size() > kShown ? text + " and " + std::to_string(names.size() - kShown) + " more" : text;
}

}  // namespace

void define_class_weight_flags() {
  mox::define_flag(
      "class_weights", std::vector<std::string>{},
      "CLASS=WEIGHT, for as many classes as wanted: how much a sample of the class counts in the "
      "loss (the mean over samples of weight times loss) and in metrics. The others count 1.");
}

std::vector<double> class_weights(const std::vector<std::string>& label_names, bool has_many_labels) {
  const auto given = mox::get_flag<std::vector<std::string>>("class_weights");
  if (given.empty()) return {};
  if (has_many_labels)
    throw mox::InvalidArgument(
        "class_weights is set, but in data with any number of labels a sample has no class of its own");
  std::vector<double> weights(label_names.size(), 1);
  std::vector<bool> is_given(label_names.size());
  for (const std::string& text : given) {
    const NamedWeight named = named_weight(text);
    const auto found = std::ranges::find(label_names, named.name);
    if (found == label_names.end())
      throw mox::InvalidArgument("class_weights: the data has no class '" + named.name +
                                 "'; its classes are: " + listed(label_names));
    const size_t number = found - label_names.begin();
    if (is_given[number])
      throw mox::InvalidArgument("class_weights: the class '" + named.name + "' is there twice");
    is_given[number] = true;
    weights[number] = named.weight;
  }
  if (std::ranges::all_of(weights, [](double weight) { return weight == 0; }))
    throw mox::InvalidArgument("class_weights: all classes have the weight 0, so nothing would be learnt");
  return weights;
}

mox::Tensor weighted_cross_entropy(const mox::Tensor& logits, const mox::Tensor& labels,
                                   const std::vector<double>& weights, double label_smoothing) {
  if (labels.shape().rank() == 1)
    return mox::sparse_softmax_cross_entropy(logits, labels, {.label_smoothing = label_smoothing}) *
           mox::class_weights(labels, weights);
  const std::vector<float> row(weights.begin(), weights.end());
  const int64_t classes = row.size();
  const mox::Tensor shares = labels * mox::constant(mox::Array::from<float>({1, classes}, row)),
                    whole = mox::reduce_sum(shares, {.axes = {1}, .keep_dims = true});
  // The loss's own smoothing would spread 1 over the classes, whatever the sample counts.
  const auto kept = static_cast<float>(1 - label_smoothing),
             spread = static_cast<float>(label_smoothing / static_cast<double>(classes));
  return mox::softmax_cross_entropy(logits, shares * kept + whole * spread);
}

}  // namespace image_classifier
