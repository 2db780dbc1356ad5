// A small network with all that could depend on where it is computed: batch normalisation, dropout, shuffled
// data whose last batch is short, clipping. One rank of a job can be made to fail, by --fault, --fault_rank
// and --fault_step.
#include <moxing/moxing.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "ops/processor/instruction_set.h"

namespace {

constexpr int64_t kSamples = 300;

bool has_fault(const std::string& fault) {
  return mox::flag("fault") == fault && mox::rank() == mox::get_flag<int64_t>("fault_rank");
}

// The same on all ranks, but that the hundredth sample which the faulty one reads cannot be read.
mox::Dataset with_an_unreadable_sample(const mox::Dataset& samples) {
  return samples.map([is_here = mox::rank() == mox::get_flag<int64_t>("fault_rank"),
                      read = std::make_shared<std::atomic<int>>(0)](const mox::Element& sample) {
    if (is_here && ++*read == 100) throw mox::DataError("'daisy/17.jpg' is damaged (on_bad_sample)");
    return sample;
  });
}

mox::Dataset of_evaluation(const mox::Dataset& samples) {
  if (has_fault("stop_evaluation")) raise(SIGSTOP);
  if (mox::flag("fault") == "unreadable_evaluation") return with_an_unreadable_sample(samples);
  if (has_fault("data")) return samples.take(kSamples / 3);
  if (mox::flag("fault") != "filter") return samples;
  const int64_t labels = has_fault("filter") ? 3 : 10;
  return samples.filter(
      [labels](const mox::Element& sample) { return sample[1].item() < static_cast<double>(labels); });
}

mox::Dataset input_fn(mox::ModeKeys mode) {
  std::vector<float> pixels(kSamples * 64);
  std::vector<int64_t> labels(kSamples);
  for (size_t i = 0; i < labels.size(); ++i) {
    labels[i] = static_cast<int64_t>(i * 7 % 10);
    for (size_t p = 0; p < 64; ++p)
      pixels[i * 64 + p] = static_cast<float>((i * 37 + p * static_cast<size_t>(labels[i] + 3)) % 17) / 17.0F;
  }
  if (has_fault("pixels"))
    for (float& pixel : pixels) pixel = 1 - pixel;
  const auto samples = mox::Dataset::from_arrays(
      {mox::Array::from<float>({kSamples, 1, 8, 8}, pixels), mox::Array::from<int64_t>({kSamples}, labels)});
  if (mode != mox::ModeKeys::TRAIN) return of_evaluation(samples);
  if (mox::flag("fault") == "unreadable")
    return with_an_unreadable_sample(samples.shuffle(kSamples)).repeat();
  return mox::get_flag<bool>("endless") ? samples.shuffle(kSamples).repeat() : samples.shuffle(kSamples);
}

mox::ModelSpec model_fn(const mox::Inputs& in, mox::ModeKeys mode) {
  auto [images, labels] = in.take<2>();
  auto x = mox::layers::conv2d(images, 4, {3, 3}, {.name = "conv"});
  x = mox::relu(mox::layers::batch_norm(x, mode));
  x = mox::layers::dropout(mox::flatten(x), 0.3F, mode);
  // Its gradient travels in several messages.
  if (mox::get_flag<bool>("wide")) x = mox::relu(mox::layers::dense(x, 3000, {.name = "wide"}));
  auto logits = mox::layers::dense(x, 10, {.name = "logits"});
  auto loss = mox::reduce_mean(mox::sparse_softmax_cross_entropy(logits, labels));
  if (mode == mox::ModeKeys::PREDICT) return {.output_info = {{"logits", logits}}};
  mox::NamedTensors log_info{{"loss", loss}, {"accuracy", mox::accuracy(logits, labels)}};
  if (const auto best = mox::get_flag<int64_t>("best_step"); best > 0) {
    const auto steps = mox::get_variable("steps", {}, mox::zeros(), {.trainable = false});
    if (mode == mox::ModeKeys::TRAIN) mox::update_after_step(steps, steps + 1.0F);
    log_info.emplace_back("distance", mox::abs(steps - static_cast<float>(best)));
  }
  return {
      .loss = loss,
      .log_info = std::move(log_info),
      .metrics = {{"accuracy", mox::metrics::accuracy(logits, labels)},
                  {"auc", mox::metrics::roc_auc(logits, labels)},
                  {"calibration", mox::metrics::expected_calibration_error(mox::softmax(logits), labels)}}};
}

void print_batches(std::span<const mox::OutputBatch> batches) {
  for (const mox::OutputBatch& batch : batches) {
    std::printf("rank %d: %ld from %ld\n", mox::rank(), batch.samples(), batch.first_sample);
    std::fflush(stdout);
  }
}

// A rule that needs the whole gradient of a variable: its length.
class NormalisedGradient : public mox::Optimizer {
 public:
  std::string_view name() const override { return "normalised"; }
  std::string description() const override { return "normalised"; }
  std::vector<mox::SlotSpec> slots() const override { return {}; }
  double learning_rate(int64_t, double) const override { return 0.01; }
  bool needs_steps_per_epoch() const override { return false; }
  mox::ParameterSettings parameter_settings(std::string_view, const mox::Shape&) const override { return {}; }
  void apply(const mox::ParameterUpdate& update, const mox::Team&) const override {
    double squares = 0;
    for (const float number : update.gradient) squares += static_cast<double>(number) * number;
    const double rate = update.learning_rate / (std::sqrt(squares) + 1e-6);
    for (size_t i = 0; i < update.value.size(); ++i)
      update.value[i] -= static_cast<float>(rate * update.gradient[i]);
  }
};

class FaultHook : public mox::Hook {
 public:
  void after_create_session(mox::Session& session) override {
    if (has_fault("early")) session.request_stop("not today");
  }
  void before_run(mox::Session& session) override {
    const std::string fault = mox::flag("fault");
    const bool is_here = mox::rank() == mox::get_flag<int64_t>("fault_rank");
    if (fault == "kill_after" && is_here && session.global_step() == session.first_step() + 5) raise(SIGKILL);
    if (session.global_step() != mox::get_flag<int64_t>("fault_step") ||
        mox::rank() != mox::get_flag<int64_t>("fault_rank"))
      return;
    if (fault == "exception") throw std::runtime_error("a mistake of the program");
    if (fault == "kill") raise(SIGKILL);
    if (fault == "stop") raise(SIGSTOP);
    if (fault == "sleep") sleep(50);
    if (fault == "terminate") raise(SIGTERM);
    if (fault == "leave") std::exit(0);
  }
  void after_run(mox::Session& session, const mox::StepResult&) override {
    if (!has_fault("alone") || session.global_step() != mox::get_flag<int64_t>("fault_step")) return;
    std::vector<float> numbers(mox::get_flag<int64_t>("fault_numbers"));
    mox::allreduce(numbers);
  }
};

// Takes its time wherever a checkpoint is made, and says how far the training is.
class SlowSaveHook : public mox::Hook {
 public:
  std::string name() const override { return "slow_save"; }
  std::string save_state() const override {
    std::this_thread::sleep_for(std::chrono::seconds(3));  // signals do not end it
    return "";
  }
  void before_run(mox::Session& session) override {
    if (session.global_step() != 3) return;
    std::printf("global step 3 is done\n");
    std::fflush(stdout);
  }
};

// Begins with other variables on one rank.
class OtherVariablesHook : public mox::Hook {
 public:
  void after_create_session(mox::Session& session) override {
    if (mox::rank() != mox::get_flag<int64_t>("fault_rank")) return;
    for (const std::string& name : session.variable_names()) {
      mox::Array value = session.variable(name).clone();
      for (float& number : value.values<float>()) number += 1;
      session.set_variable(name, value);
    }
  }
};

// Says on each rank which of the evaluated states the run ends with.
class EndStateHook : public mox::Hook {
 public:
  void after_evaluation(mox::Session& session, const mox::Metrics&) override {
    // The step first seen with a state: what keep_best restores is evaluated again, at the run's end.
    evaluated_.emplace(digest(session), session.global_step());
  }
  void end(mox::Session& session) override {
    const auto found = evaluated_.find(digest(session));
    std::printf("rank %d ends with the state of step %ld, %s\n", mox::rank(),
                found == evaluated_.end() ? -1 : found->second, digest(session).c_str());
    std::fflush(stdout);
  }

 private:
  static std::string digest(const mox::Session& session) {
    std::vector<mox::NamedArray> variables;
    for (const std::string& name : session.variable_names())
      variables.push_back({name, session.variable(name)});
    return mox::arrays_digest(variables);
  }

  std::map<std::string, int64_t> evaluated_;
};

bool has_loaded_mpi() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find("libmpi.so") != std::string::npos) return true;
  return false;
}

// Whether all threads of this process may use the same cores.
bool threads_share_cores() {
  cpu_set_t cores, own;
  if (sched_getaffinity(0, sizeof own, &own) != 0) return false;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task"))
    if (sched_getaffinity(std::atoi(task.path().filename().c_str()), sizeof cores, &cores) != 0 ||
        !CPU_EQUAL(&cores, &own))
      return false;
  return true;
}

// What a program may do beside mox::run. Returns whether all is as documented.
bool functions_work() {
  const int rank = mox::rank(), size = mox::size();
  std::vector<float> values(5000, static_cast<float>(rank + 1));
  mox::allreduce(std::span(values));
  bool good = values.front() == static_cast<float>(size * (size + 1)) / 2 && values.back() == values.front();
  good =
      good && mox::broadcast("from " + std::to_string(rank), size - 1) == "from " + std::to_string(size - 1);
  const auto all = mox::allgather(std::string(static_cast<size_t>(rank), 'r'));
  for (size_t r = 0; r < all.size(); ++r) good = good && all[r].size() == r;
  int calls = 0;
  mox::mpi_local_sync_barrier([&] { ++calls; });
  good = good && calls == (mox::local_rank() == 0 ? 1 : 0) && mox::local_size() == size;
  good = good && threads_share_cores() && has_loaded_mpi() == (size > 1);
  mox::barrier();
  if (rank == 0) std::printf("ranks: %d\n", size);
  return good;
}

}  // namespace

int main(int argc, char** argv) {
  mox::define_flag(
      "fault", std::string("none"),
      "exception, kill, kill_after (the start), stop, sleep, slow_save, terminate, leave, alone (sums up what "
      "no other rank does), early (a wish to stop before the first step), compiled (something before the run), "
      "batch, variables (other ones), horovod (the same, in its words), data (fewer to evaluate), pixels (other "
      "ones), filter (the same, which no count shows), stop_evaluation, local_work (that takes long, before the "
      "run), local_stop (the same, and stops), machine (prints what it has of it), functions or none.");
  mox::define_flag("fault_rank", int64_t{1}, "The rank that has the fault.");
  mox::define_flag("fault_step", int64_t{5}, "The steps before it.");
  mox::define_flag("fault_numbers", int64_t{1}, "Of 'alone': how many numbers are to be summed.");
  mox::define_flag("endless", true, "Whether the training data repeat.");
  mox::define_flag("print_predictions", false, "Whether output_fn prints what it gets.");
  mox::define_flag("wide", false, "Whether the network has a wide layer, too.");
  mox::define_flag("best_step", int64_t{0},
                   "Whether evaluations measure the distance from this step, and each rank says with the "
                   "state of which step it ends.");
  mox::define_flag("normalised", false, "Whether the optimizer is one that needs whole gradients.");
  mox::init(argc, argv);
  if (mox::flag("fault") == "functions") return functions_work() ? 0 : 3;
  if (mox::flag("fault") == "machine") {
    cpu_set_t cores;
    if (sched_getaffinity(0, sizeof cores, &cores) != 0) return 3;
    std::printf("rank %d is local rank %d of %d with %d cores\n", mox::rank(), mox::local_rank(),
                mox::local_size(), CPU_COUNT(&cores));
    return 0;
  }
  if (mox::flag("fault").starts_with("local_")) {
    mox::mpi_local_sync_barrier([] {
      if (mox::flag("fault") == "local_stop") raise(SIGSTOP);
      sleep(8);
    });
    mox::barrier();
    if (mox::rank() == 1) std::printf("all have passed\n");
    return 0;
  }
  const bool other_batch =
      mox::flag("fault") == "batch" && mox::rank() == mox::get_flag<int64_t>("fault_rank");
  // The first kernel fixes the instructions of the process.
  if (mox::flag("fault") == "compiled" && mox::rank() == mox::get_flag<int64_t>("fault_rank"))
    mox::instruction_set();
  mox::OptimizerFn optimizer_fn = mox::get_optimizer_fn("momentum", {.learning_rate = 0.05, .momentum = 0.9});
  if (mox::get_flag<bool>("normalised")) optimizer_fn = [] { return std::make_unique<NormalisedGradient>(); };
  std::vector<std::shared_ptr<mox::Hook>> hooks = {std::make_shared<FaultHook>()};
  if (mox::get_flag<int64_t>("best_step") > 0) hooks.push_back(std::make_shared<EndStateHook>());
  if (has_fault("slow_save")) hooks.push_back(std::make_shared<SlowSaveHook>());
  const bool horovod = mox::flag("fault") == "horovod";
  if (horovod || mox::flag("fault") == "variables") hooks.push_back(std::make_shared<OtherVariablesHook>());
  if (horovod) {
    hooks.push_back(mox::BroadcastGlobalVariablesHook(0));
    optimizer_fn = mox::distributed(optimizer_fn);
  }
  return mox::run({.input_fn = input_fn,
                   .model_fn = model_fn,
                   .optimizer_fn = optimizer_fn,
                   .output_fn = mox::get_flag<bool>("print_predictions") ? print_batches : mox::OutputFn(),
                   .inter_mode = mox::ModeKeys::EVAL,
                   .batch_size = other_batch ? 9 : 8,
                   .log_dir = mox::flag("train_url"),
                   .max_number_of_steps = 40,
                   .hooks = hooks});
}
