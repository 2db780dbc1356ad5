// The pre-set job for tables: learns a column of a CSV file from the others, as a YAML file says.
//
//   build/bin/tabular --config models/tabular/tabular.yaml --data_url=FOLDER --train_url=runs/table
//
// docs/tabular.md describes the options.
#include <fmt/format.h>
#include <moxing/moxing.h>

#include <cmath>
#include <limits>

#include "models/tabular/tabular_data.h"

namespace {

mox::layers::Activation activation() {
  const std::string name = mox::flag("model.activation");
  if (name == "relu") return mox::relu;
  if (name == "tanh") return mox::tanh;
  if (name == "sigmoid") return mox::sigmoid;
  throw mox::ConfigError("model.activation must be relu, tanh or sigmoid; it is '" + name + "'");
}

mox::Tensor hidden_layers(mox::Tensor x, mox::ModeKeys mode) {
  constexpr int64_t kMostUnits = 1 << 20;
  const auto units = mox::get_flag<std::vector<int64_t>>("model.hidden");
  for (const int64_t of_layer : units)
    if (of_layer < 1 || of_layer > kMostUnits)
      throw mox::ConfigError("model.hidden must list units of hidden layers, each from 1 to " +
                             std::to_string(kMostUnits) + "; one is " + std::to_string(of_layer));
  const float dropout = mox::get_flag<double>("model.dropout");
  for (size_t i = 0; i < units.size(); ++i) {
    x = mox::layers::dense(x, units[i],
                           {.name = "hidden_" + std::to_string(i + 1), .activation = activation()});
    if (dropout != 0) x = mox::layers::dropout(x, dropout, mode);
  }
  return x;
}

// Predictions are float32: of targets that this cannot tell apart they would be few different numbers, and
// the errors that are measured those of the rounding.
void require_told_apart_in_float32(const mox::TableSchema& schema) {
  constexpr double kLeastSteps = 64;  // of float32 in a deviation
  const auto& [mean, deviation] = schema.target_moments();
  using Limits = std::numeric_limits<float>;
  const bool is_coarse = deviation < kLeastSteps * Limits::epsilon() * std::fabs(mean);
  const bool is_beyond = deviation < kLeastSteps * static_cast<double>(Limits::min()) ||
                         deviation + std::fabs(mean) > static_cast<double>(Limits::max()) / kLeastSteps;
  if (!is_coarse && !is_beyond) return;
  throw mox::DataError(
      fmt::format("the target '{}' has the mean {:g} and the deviation {:g}, which float32, in which "
                  "predictions are made, {}",
                  schema.target(), mean, deviation,
                  is_beyond ? "does not hold: scale the column"
                            : fmt::format("tells apart by {:.2g} at best: subtract what the values have in "
                                          "common (about {:g}) from the column",
                                          std::fabs(mean) * static_cast<double>(Limits::epsilon()), mean)));
}

// The network learns the normalised target; what a person reads is in the target's own units.
mox::ModelSpec regression(const mox::Inputs& in, mox::ModeKeys mode, const mox::TableSchema& schema) {
  require_told_apart_in_float32(schema);
  const auto in_units = [&](const mox::Tensor& x) {
    const auto& moments = schema.target_moments();
    return x * static_cast<float>(moments.deviation) + static_cast<float>(moments.mean);
  };
  const auto output = mox::layers::dense(hidden_layers(in[0], mode), 1, {.name = "output"});
  const mox::Tensor normalised = mox::reshape(output, {output.shape()[0]});
  const mox::Tensor prediction = in_units(normalised);
  if (mode == mox::ModeKeys::PREDICT) return {.output_info = {{"prediction", prediction}}};
  const mox::Tensor loss = mox::mean_squared_error(normalised, in[1]);
  const mox::Tensor target = in_units(in[1]);
  return {.loss = loss,
          .log_info = {{"loss", loss}},
          .metrics = {{"rmse", mox::metrics::root_mean_squared_error(prediction, target)},
                      {"mae", mox::metrics::mean_absolute_error(prediction, target)},
                      {"r2", mox::metrics::r2(normalised, in[1])}}};
}

// The target's own number for each class, where all are whole numbers: of the classes 3, 5 and 8 the last is
// number 2, which nobody should read as a 2. Undefined otherwise.
mox::Tensor values_of_classes(const mox::TableSchema& schema) {
  constexpr double kMost = 1 << 30;
  std::vector<int32_t> values;
  for (const std::string& name : schema.class_names()) {
    const auto number = mox::data::parse_number(name, schema.decimal());
    if (!number || *number != std::floor(*number) || std::fabs(*number) > kMost) return {};
    values.push_back(static_cast<int32_t>(*number));
  }
  return mox::constant(mox::Array::from<int32_t>({std::ssize(values)}, values));
}

mox::ModelSpec classification(const mox::Inputs& in, mox::ModeKeys mode, const mox::TableSchema& schema) {
  const int64_t classes = schema.class_names().size();
  const mox::Tensor logits = mox::layers::dense(hidden_layers(in[0], mode), classes, {.name = "output"});
  if (mode == mox::ModeKeys::PREDICT) {
    const mox::Tensor number = mox::argmax(logits);
    mox::NamedTensors output{{"class", number}, {"probabilities", mox::softmax(logits)}};
    if (const mox::Tensor values = values_of_classes(schema); values.defined())
      output.insert(output.begin() + 1, {"value", mox::gather(values, number)});
    return {.output_info = std::move(output)};
  }
  const mox::Tensor loss = mox::reduce_mean(mox::sparse_softmax_cross_entropy(logits, in[1]));
  mox::metrics::NamedMetrics metrics{{"accuracy", mox::metrics::accuracy(logits, in[1])},
                                     {"log_loss", mox::metrics::log_loss(mox::softmax(logits), in[1])}};
  if (mox::get_flag<bool>("metrics.per_class"))
    metrics.emplace_back("classes",
                         mox::metrics::per_class_table(logits, in[1], {.class_names = schema.class_names()}));
  return {.loss = loss,
          .log_info = {{"loss", loss}, {"accuracy", mox::accuracy(logits, in[1])}},
          .metrics = std::move(metrics)};
}

}  // namespace

int main(int argc, char** argv) {
  mox::define_flag("model.hidden", std::vector<int64_t>{64, 32}, "Units of the hidden layers.");
  mox::define_flag("model.activation", "relu", "Of the hidden layers: relu, tanh or sigmoid.");
  mox::define_flag("model.dropout", 0.0, "Share of hidden units that are dropped in training, in [0, 1).");
  mox::define_flag("metrics.per_class", false,
                   "Whether an evaluation shows precision, recall and F1 of each class.");
  tabular::define_data_flags();
  mox::init(argc, argv,
            {{"inter_mode", "eval"}, {"optimizer.name", "adam"}, {"optimizer.learning_rate", 0.001}});
  const std::vector<mox::KeptOption> kept{{"model.hidden"}, {"model.activation"}};
  mox::use_kept_options(mox::mode_from_string(mox::flag("run_mode")), mox::log_dir_of_run(),
                        mox::checkpoint_path_of_run(), kept);
  const tabular::TabularData data;
  const mox::TableSchema& schema = data.schema();
  const bool has_classes = schema.task() == mox::TableTask::kClassification;
  std::vector<std::shared_ptr<mox::Hook>> hooks = {mox::table_schema_hook(schema),
                                                   mox::kept_options_hook(kept)};
  // Whatever uses what was trained has its classes from the schema.
  if (has_classes && mox::mode_from_string(mox::flag("run_mode")) == mox::ModeKeys::TRAIN)
    hooks.push_back(mox::label_names_hook(schema.class_names()));
  return mox::run({.input_fn = [&](mox::ModeKeys mode) { return data.dataset(mode); },
                   .model_fn =
                       [&](const mox::Inputs& in, mox::ModeKeys mode) {
                         return has_classes ? classification(in, mode, schema) : regression(in, mode, schema);
                       },
                   .log_dir = mox::flag("train_url"),
                   .hooks = std::move(hooks)});
}
