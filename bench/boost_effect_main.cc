// build/bin/bench_boost_effect [--json] [--data_url=DIR] [--train_url=DIR] [--samples=60000] [--seeds=3] ...
//
// What stage 2 of dimension-reduced training brings: resnet_v1_20 on Fashion-MNIST, trained at a constant
// learning rate with snapshots (stage 1); from there two epochs of stage 2, ten further ordinary epochs, and,
// with as many forward passes as stage 2 has taken (a step counts three, a trial one), a falling learning
// rate, stochastic and trainable weight averaging. Test accuracies, each seed's and their means.
//
// All runs are under train_url; the same command goes on where it was stopped.
// bench/boost_plot.py draws them.
#include <fmt/format.h>
#include <models/zoo/zoo.h>
#include <moxing/moxing.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "bench/json_line.h"
#include "bench/output_to_error.h"
#include "bench/weight_averaging.h"
#include "moxing/checkpoint/checkpoint.h"
#include "runtime/base/random.h"
#include "runtime/job/job.h"

namespace {

constexpr int64_t kSide = 28, kShift = 2;

// Moved by up to two pixels in each direction and mirrored, both at random.
mox::Element moved(const mox::SampleContext& context, const mox::Element& sample) {
  const mox::RandomStream random = context.random();
  const auto down = static_cast<int64_t>(random.below(0, 2 * kShift + 1)) - kShift,
             right = static_cast<int64_t>(random.below(1, 2 * kShift + 1)) - kShift;
  const bool mirrored = random.below(2, 2) == 1;
  mox::Array image(mox::DType::kFloat32, {1, kSide, kSide});
  const auto from = sample[0].values<float>();
  const std::span<float> to = image.values<float>();
  for (int64_t y = 0; y < kSide; ++y)
    for (int64_t x = 0; x < kSide; ++x) {
      const int64_t row = y + down, column = (mirrored ? kSide - 1 - x : x) + right;
      if (row < 0 || row >= kSide || column < 0 || column >= kSide) continue;
      to[y * kSide + x] = from[row * kSide + column];
    }
  return {image, sample[1]};
}

mox::Dataset input_fn(mox::ModeKeys mode) {
  const bool training = mode == mox::ModeKeys::TRAIN;
  auto samples = mox::data::mnist(mox::flag("data_url"), training ? "train" : "t10k",
                                  {.image_shape = mox::Shape{1, kSide, kSide}});
  if (!training) return samples;
  const int64_t size = mox::get_flag<int64_t>("samples");
  return samples.take(size).shuffle(size).repeat().map(moved);
}

mox::ModelSpec model_fn(const mox::Inputs& in, mox::ModeKeys mode) {
  auto [images, labels] = in.take<2>();
  auto logits = mox::get_model_fn("resnet_v1_20", {.num_classes = 10})(images, mode).logits;
  auto loss = mox::reduce_mean(mox::sparse_softmax_cross_entropy(logits, labels));
  return {.loss = loss, .log_info = {{"loss", loss}, {"accuracy", mox::accuracy(logits, labels)}}};
}

// The learning rate falls on a straight line to a hundredth between two steps.
class FallingRate : public mox::TrainingHook {
 public:
  FallingRate(int64_t from, int64_t to) : from_(from), to_(to) {}
  void before_run(mox::Session& session) override {
    const double part = static_cast<double>(session.global_step() - from_) / static_cast<double>(to_ - from_);
    session.set_learning_rate_multiplier(1 - 0.99 * std::clamp(part, 0.0, 1.0));
  }

 private:
  int64_t from_, to_;
};

struct Result {
  double accuracy = 0, epochs = 0;  // epochs: forward-equivalents / 3 since stage 1, in passes over the data
};

class Study {
 public:
  explicit Study(uint64_t seed)
      : seed_(seed),
        top_(fmt::format("{}/seed-{}", mox::flag("train_url"), seed)),
        stage_one_epochs_(mox::get_flag<int64_t>("stage_one_epochs")),
        batch_(mox::get_flag<int64_t>("batch_size")),
        per_epoch_(static_cast<double>(mox::get_flag<int64_t>("samples")) / static_cast<double>(batch_)) {}

  std::vector<std::pair<std::string, Result>> run() {
    const double before = stage_one();
    std::vector<std::pair<std::string, Result>> all{{"before", {before, 0}}};
    const Result boosted = boost();
    all.emplace_back("boost", boosted);
    const int64_t further = mox::get_flag<int64_t>("further_epochs");
    // Those whose accuracy is known: a run of more of them is not needed.
    const int64_t epochs = std::clamp<int64_t>(std::llround(boosted.epochs), 1, further);
    const auto of = [](double accuracy, double passes) { return Result{accuracy, passes}; };
    const double last = ordinary(further);
    all.emplace_back("ordinary_equal", of(accuracy_after(epochs), static_cast<double>(epochs)));
    all.emplace_back("falling_rate", of(falling_rate(epochs), static_cast<double>(epochs)));
    all.emplace_back("swa", of(stochastic_average(epochs - 1), static_cast<double>(epochs - 1) + 1.0 / 3));
    all.emplace_back("twa", of(trainable_average(epochs), static_cast<double>(epochs)));
    all.emplace_back("ordinary_further", of(last, static_cast<double>(further)));
    return all;
  }

 private:
  mox::RunSpec spec(const std::string& name, int64_t steps) const {
    return {.input_fn = input_fn,
            .model_fn = model_fn,
            .optimizer_fn =
                mox::get_optimizer_fn("momentum", {.learning_rate = mox::get_flag<double>("rate"),
                                                   .weight_decay = mox::get_flag<double>("weight_decay"),
                                                   .momentum = 0.9}),
            .inter_mode = mox::ModeKeys::EVAL,
            .log_dir = top_ + "/" + name,
            .max_number_of_steps = steps,
            .seed = static_cast<int64_t>(seed_)};
  }

  int64_t steps_of(int64_t epochs) const {
    return static_cast<int64_t>(std::ceil(static_cast<double>(epochs) * per_epoch_ - 1e-9));
  }
  int64_t end_of_stage_one() const { return steps_of(stage_one_epochs_); }

  static double accuracy_of(const mox::RunSpec& run) {
    const bench::OutputToError elsewhere;
    const mox::RunResult result = mox::run_or_throw(run);
    if (result.interrupted) throw mox::Error("a signal has ended the study; the same command goes on");
    for (const auto& [name, value] : result.evaluation)
      if (name == "accuracy") return value;
    throw mox::Error("an evaluation without an accuracy");
  }

  double stage_one() {
    mox::RunSpec run = spec("stage1", end_of_stage_one());
    run.eval_every_n_steps = steps_of(5);
    run.snapshots = mox::SnapshotHookOptions{.every_n_steps = end_of_stage_one() /
                                                              mox::get_flag<int64_t>("snapshot_count")};
    return accuracy_of(run);
  }

  std::vector<std::string> snapshots(const std::string& run) const {
    std::vector<std::string> paths;
    for (const auto& file : mox::boost::list_snapshots(top_ + "/" + run + "/snapshots"))
      paths.push_back(file.path);
    return paths;
  }

  // Makes the run go on from the state that stage 1 has ended with.
  std::string begin_with_stage_one(const std::string& name) const {
    const std::string from = mox::resolve_checkpoint(top_ + "/stage1");
    const std::string to = top_ + "/" + name;
    if (!mox::latest_checkpoint(to)) {
      std::filesystem::create_directories(to);
      std::filesystem::copy(from, to + "/" + std::filesystem::path(from).filename().string(),
                            std::filesystem::copy_options::recursive);
    }
    return name;
  }

  Result boost() const {
    const int64_t steps = steps_of(mox::get_flag<int64_t>("boost_epochs"));
    mox::RunSpec run = spec("boost", steps);
    run.checkpoint_path = mox::resolve_checkpoint(top_ + "/stage1");
    run.boost = mox::BoostOptions{.dim_reduce = true};
    run.dim_reduce = mox::DimReduceOptions{.weight_load_dir = top_ + "/stage1/snapshots"};
    const double accuracy = accuracy_of(run);
    const auto stage = nlohmann::json::parse(mox::load_checkpoint(run.log_dir.value()).state.at("stage_two"));
    const auto method = nlohmann::json::parse(stage.at("method").get<std::string>());
    const double forwards = 3 * method.at("steps").get<double>() + method.at("trials").get<double>();
    return {accuracy, forwards / 3 / per_epoch_};
  }

  double ordinary(int64_t epochs) const {
    mox::RunSpec run = spec(begin_with_stage_one("ordinary"), steps_of(stage_one_epochs_ + epochs));
    run.eval_every_n_steps = steps_of(1);
    run.snapshots = mox::SnapshotHookOptions{.every_n_epochs = 1};
    return accuracy_of(run);
  }

  // Of the ordinary run, by its evaluation at that time.
  double accuracy_after(int64_t epochs) const {
    const int64_t wanted = steps_of(stage_one_epochs_ + epochs);
    int64_t nearest = 0;
    double accuracy = 0;
    std::ifstream lines(top_ + "/ordinary/metrics.jsonl");
    for (std::string line; std::getline(lines, line);) {
      const auto json = nlohmann::json::parse(line);
      if (!json.value("evaluation", false)) continue;
      const auto step = json.at("step").get<int64_t>();
      if (std::abs(step - wanted) > std::abs(nearest - wanted)) continue;
      nearest = step;
      accuracy = json.at("accuracy").get<double>();
    }
    return accuracy;
  }

  double falling_rate(int64_t epochs) const {
    mox::RunSpec run = spec(begin_with_stage_one("falling_rate"), steps_of(stage_one_epochs_ + epochs));
    run.hooks = {std::make_shared<FallingRate>(end_of_stage_one(), run.max_number_of_steps.value())};
    return accuracy_of(run);
  }

  // Of the later half of stage 1 and `epochs` of the ordinary epochs after it.
  double stochastic_average(int64_t epochs) const {
    std::vector<std::string> paths = snapshots("stage1");
    paths.erase(paths.begin(), paths.begin() + static_cast<std::ptrdiff_t>(paths.size() / 2));
    const auto later = snapshots("ordinary");
    paths.insert(paths.end(), later.begin(),
                 later.begin() + std::min<std::ptrdiff_t>(epochs, static_cast<std::ptrdiff_t>(later.size())));
    bench::write_averaged_checkpoint(top_ + "/stage1", paths, top_ + "/swa/mean");
    mox::RunSpec run = spec("swa/averages", steps_of(1));  // moving averages alone change
    run.optimizer_fn = mox::get_optimizer_fn("sgd", {.learning_rate = 0.0});
    run.checkpoint_path = top_ + "/swa/mean";
    return accuracy_of(run);
  }

  double trainable_average(int64_t epochs) const {
    const std::vector<std::string> paths = snapshots("stage1");
    bench::write_averaged_checkpoint(top_ + "/stage1", paths, top_ + "/twa/mean");
    mox::RunSpec run = spec("twa/run", steps_of(epochs));
    run.checkpoint_path = top_ + "/twa/mean";
    run.hooks = {bench::in_span_hook(paths), std::make_shared<FallingRate>(0, steps_of(epochs))};
    return accuracy_of(run);
  }

  uint64_t seed_;
  std::string top_;
  int64_t stage_one_epochs_, batch_;
  double per_epoch_;
};

void report(const std::string& name, const std::string& metric, double value, const std::string& unit) {
  if (mox::get_flag<bool>("json"))
    bench::print_json_line(
        {.bench = "boost_effect", .name = name, .metric = metric, .value = value, .unit = unit});
  else
    fmt::print("{:36} {:24} {:8.4f} {}\n", name, metric, value, unit);
  std::fflush(stdout);
}

int measure() {
  const int64_t seeds = mox::get_flag<int64_t>("seeds");
  std::map<std::string, std::vector<Result>> all;
  for (int64_t seed = mox::get_flag<int64_t>("first_seed"); seed <= seeds; ++seed)
    for (const auto& [name, result] : Study(static_cast<uint64_t>(seed)).run()) {
      all[name].push_back(result);
      report(fmt::format("{}_seed_{}", name, seed), "test_accuracy", result.accuracy, "");
    }
  for (const auto& [name, results] : all) {
    double accuracy = 0, epochs = 0;
    for (const Result& result : results) {
      accuracy += result.accuracy / static_cast<double>(results.size());
      epochs += result.epochs / static_cast<double>(results.size());
    }
    report(name, "mean_test_accuracy", accuracy, "");
    report(name, "ordinary_epochs_worth_of_passes", epochs, "epochs");
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  mox::define_flag("json", false, "Print one line of JSON a number.");
  mox::define_flag("samples", int64_t{60000}, "Training images, the first of the set.");
  mox::define_flag("seeds", int64_t{3}, "Repetitions, with the seeds 1, 2, ...");
  mox::define_flag("first_seed", int64_t{1}, "The seed to begin with, for processes that share the seeds.");
  mox::define_flag("stage_one_epochs", int64_t{20}, "Passes over the training images in stage 1.");
  mox::define_flag("snapshot_count", int64_t{40}, "Snapshots of stage 1.");
  mox::define_flag("boost_epochs", int64_t{2}, "Passes in stage 2.");
  mox::define_flag("further_epochs", int64_t{10}, "Ordinary passes that stage 2 is compared with.");
  mox::define_flag("rate", 0.1, "The learning rate of stage 1.");
  mox::define_flag("weight_decay", 1e-4, "Weight decay of stage 1 and of ordinary passes.");
  try {
    mox::init(argc, argv);
    return measure();
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_boost_effect: {}\n", error.what());
    return mox::internal::exit_status_of(error);
  }
}
