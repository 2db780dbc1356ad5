// Stage 2 within a run: against an independent NumPy implementation, on replicas and devices, in one run and
// in two, stopped and gone on with.
#include "moxing/boost/stage_two.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "moxing/boost/basis_file.h"
#include "moxing/checkpoint/checkpoint.h"
#include "moxing/layers/layers.h"
#include "runtime/base/error.h"
#include "tests/moxing/boost/boost_samples.h"
#include "tests/moxing/small_run.h"
#include "tests/support/larger.h"
#include "tests/support/temporary_directory.h"

namespace mox {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> flags(const std::vector<std::string>& more) {
  std::vector<std::string> all{"--threads=2", "--log_level=error", "--log_every_n_steps=0",
                               "--save_model_secs=0"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::map<std::string, Array> variables_in(const std::string& path) {
  std::map<std::string, Array> found;
  for (const NamedArray& variable : load_checkpoint(path).variables)
    found.emplace(variable.name, variable.value);
  return found;
}

void expect_equal_variables(const std::string& a, const std::string& b) {
  EXPECT_EQ(checkpoint_digest(a), checkpoint_digest(b)) << a << " and " << b;
}

// The network of boost_network.npz.
class FixtureRun : public ::testing::Test {
 protected:
  FixtureRun() : fixture_(boost::boost_fixture("boost_network.npz")) {
    const auto w = fixture_.at("w").values<float>();
    const auto part = [&](size_t first, size_t count) { return w.subspan(first, count); };
    save_checkpoint(directory_.file("stage1"),
                    {.global_step = 120,
                     .variables = {{"b1", Array::from<float>({100}, part(0, 100))},
                                   {"b2", Array::from<float>({8}, part(100, 8))},
                                   {"w1", Array::from<float>({40, 100}, part(108, 4000))},
                                   {"w2", Array::from<float>({100, 8}, part(4108, 800))}},
                     .optimizer_slots = {},
                     .state = {}});
    const Array& pca = fixture_.at("pca");
    Communicator alone;
    boost::Basis basis(8, 4908, 0, 1);
    for (int64_t i = 0; i < 8; ++i) basis.write(i, 0, pca.rows(i, i + 1).values<float>());
    boost::write_basis(directory_.file("pca_mat.npy"), basis, alone);
  }

  RunSpec spec(const std::string& log_dir, int64_t batch, const std::string& mode) {
    return {
        .input_fn =
            [this](ModeKeys) {
              return Dataset::from_arrays({fixture_.at("x"), fixture_.at("y")}).repeat();
            },
        .model_fn =
            [](const Inputs& in, ModeKeys) {
              auto [x, y] = in.take<2>();
              auto h = tanh(matmul(x, get_variable("w1", {40, 100}, zeros())) +
                            get_variable("b1", {100}, zeros()));
              auto z = matmul(h, get_variable("w2", {100, 8}, zeros())) + get_variable("b2", {8}, zeros());
              auto loss = reduce_mean(sparse_softmax_cross_entropy(z, y));
              return ModelSpec{.loss = loss, .log_info = {{"loss", loss}}};
            },
        .optimizer_fn = get_optimizer_fn("sgd", {.learning_rate = 0.5}),
        .batch_size = batch,
        .log_dir = directory_.file(log_dir),
        .checkpoint_path = directory_.file("stage1"),
        .max_number_of_steps = 50,
        .boost = BoostOptions{.dim_reduce = true},
        .dim_reduce =
            DimReduceOptions{
                .n_components = 8, .on_failed_search = mode, .pca_mat_path = directory_.file("pca_mat.npy")}};
  }

  double difference(const std::string& log_dir, const std::string& mode) {
    const auto found = variables_in(directory_.file(log_dir));
    const auto expected = fixture_.at(mode + "_w").values<float>();
    size_t at = 0;
    double worst = 0, largest = 0;
    for (const auto& [name, value] : found)  // in the order of names
      for (const float element : value.values<float>()) {
        worst = test::larger(worst, std::abs(static_cast<double>(element) - expected[at]));
        largest = std::max(largest, std::abs(static_cast<double>(expected[at++])));
      }
    EXPECT_EQ(at, expected.size());
    return worst / largest;
  }

  const TemporaryDirectory directory_;
  std::map<std::string, Array> fixture_;
};

TEST_F(FixtureRun, FollowsNumPyOnOneReplicaAndOnFour) {
  for (const std::string mode : {"skip", "shrink", "stop"}) {
    {
      const ScopedConfiguration configured(flags({}));
      const RunResult result = run_or_throw(spec(mode + "1", 64, mode));
      if (mode == "stop") {
        EXPECT_EQ(result.global_step, static_cast<int64_t>(fixture_.at("stop_lengths").elements()));
        EXPECT_THAT(result.stop_reason, HasSubstr("the line search of step"));
      }
    }
    EXPECT_LT(difference(mode + "1", mode), 1e-5) << mode;
    for (const char* devices : {"--num_devices=1", "--num_devices=2"}) {
      const std::string name = mode + "4" + devices;
      const ScopedConfiguration configured(flags({"--logical_replicas=4", devices}));
      run_or_throw(spec(name, 16, mode));
      EXPECT_LT(difference(name, mode), 1e-5) << name;
    }
    expect_equal_variables(directory_.file(mode + "4--num_devices=1"),
                           directory_.file(mode + "4--num_devices=2"));
  }
}

TEST_F(FixtureRun, TheLossScaleIsTakenOut) {
  const ScopedConfiguration configured(flags({"--loss_scale=1024"}));
  run_or_throw(spec("scaled", 64, "skip"));
  EXPECT_LT(difference("scaled", "skip"), 1e-5);
}

// g is the gradient of the loss: what the optimizer would make of it has no part in stage 2.
TEST_F(FixtureRun, NeitherClippingNorWeightDecayActs) {
  for (const std::string option : {"clip_gradient_norm=0.01", "clip_gradient_value=0.0001",
                                   "optimizer.weight_decay=0.1", "optimizer.learning_rate=100"}) {
    const ScopedConfiguration configured(flags({"--" + option}));
    run_or_throw(spec(option, 64, "skip"));
    EXPECT_LT(difference(option, "skip"), 1e-5) << option;
  }
  const ScopedConfiguration configured(flags({"--clip_gradient_norm=0.01", "--loss_scale=dynamic"}));
  run_or_throw(spec("scaled", 64, "skip"));
  EXPECT_LT(difference("scaled", "skip"), 1e-5);
}

// In directions in which no loss falls a trial is the step's forward pass once more. With another mask its
// loss would be below that of the step in every second trial, and accepted.
TEST_F(FixtureRun, ATrialDrawsTheStepsDropout) {
  const ScopedConfiguration configured(flags({"--logical_replicas=2", "--num_devices=2"}));
  RunSpec run = spec("masks", 32, "skip");
  run.model_fn = [](const Inputs& in, ModeKeys mode) {
    auto [x, y] = in.take<2>();
    auto h = tanh(matmul(x, get_variable("w1", {40, 100}, zeros())) + get_variable("b1", {100}, zeros()));
    h = layers::dropout(h, 0.5F, mode);
    auto z = matmul(h, get_variable("w2", {100, 8}, zeros())) + get_variable("b2", {8}, zeros());
    const auto idle = reduce_sum(get_variable("idle", {9}, ones())) * 0.0F;
    return ModelSpec{.loss = reduce_mean(sparse_softmax_cross_entropy(z, y)) + idle};
  };
  Communicator alone;
  boost::Basis basis(8, 4917, 0, 1);
  const std::vector<float> one{1};
  for (int64_t i = 0; i < 8; ++i) basis.write(i, 108 + i, one);  // of "idle"
  boost::write_basis(run.dim_reduce->pca_mat_path, basis, alone);
  run_or_throw(run);
  const auto stage = load_checkpoint(directory_.file("masks")).state.at("stage_two");
  EXPECT_THAT(stage, HasSubstr(R"(\"failed\":50,)"));
  EXPECT_THAT(stage, HasSubstr(R"(\"trials\":100)"));
}

TEST_F(FixtureRun, OptionsOfAStageTwoThatNobodyHasAskedForAreRefused) {
  RunSpec run = spec("run", 64, "skip");
  run.max_number_of_steps = 1;
  run.boost.reset();
  {
    const ScopedConfiguration configured(flags({"--dim_reduce.alpha=0.01"}));
    EXPECT_THAT(message_of_run<ConfigError>(run),
                AllOf(HasSubstr("dim_reduce.alpha"), HasSubstr("boost.dim_reduce")));
  }
  for (const char* off : {"--boost.dim_reduce=false", "--boost_level=O0", "--boost.mode=disable_all"}) {
    const ScopedConfiguration configured(flags({"--dim_reduce.alpha=0.01", off}));
    run_or_throw(run);
  }
  const ScopedConfiguration configured(flags({"--dim_reduce.alpha=0.01"}));  // one file for all modes
  run.run_mode = ModeKeys::EVAL;
  run_or_throw(run);
}

TEST_F(FixtureRun, GoesOnFromAnyStepWithTheSameBits) {
  const ScopedConfiguration configured(flags({"--save_model_steps=1", "--keep_checkpoints=100"}));
  run_or_throw(spec("whole", 64, "skip"));
  for (const int64_t step : {0, 1, 17, 49}) {
    const std::string log_dir = directory_.file("from" + std::to_string(step));
    const std::string name = "/checkpoint-" + std::to_string(step);
    std::filesystem::create_directories(log_dir);
    std::filesystem::copy(directory_.file("whole") + name, log_dir + name);
    run_or_throw(spec("from" + std::to_string(step), 64, "skip"));
    expect_equal_variables(log_dir, directory_.file("whole"));
    EXPECT_EQ(load_checkpoint(log_dir).state.at("stage_two"),
              load_checkpoint(directory_.file("whole")).state.at("stage_two"));
  }
}

TEST_F(FixtureRun, AnotherBasisOrNoneIsRefusedWhenItGoesOn) {
  const ScopedConfiguration configured(flags({}));
  RunSpec run = spec("run", 64, "skip");
  run.max_number_of_steps = 5;
  run_or_throw(run);
  run.max_number_of_steps = 9;
  Communicator alone;
  boost::Basis other(8, 4908, 0, 1);
  const std::vector<float> one{1};
  for (int64_t i = 0; i < 8; ++i) other.write(i, i, one);
  boost::write_basis(directory_.file("other.npy"), other, alone);
  run.dim_reduce->pca_mat_path = directory_.file("other.npy");
  EXPECT_THAT(message_of_run<FailedPrecondition>(run), HasSubstr("another basis"));
  run.dim_reduce->pca_mat_path = directory_.file("none.npy");
  EXPECT_THAT(message_of_run<NotFound>(run), HasSubstr("dim_reduce.pca_mat_path"));
  run.dim_reduce->pca_mat_path = directory_.file("pca_mat.npy");
  run.dim_reduce->n_components = 7;
  EXPECT_THAT(message_of_run<FailedPrecondition>(run), HasSubstr("needs [7, 4908]"));
}

TEST_F(FixtureRun, WhatCannotBeIsRefusedBeforeTheFirstStep) {
  RunSpec run = spec("run", 64, "skip");
  run.hooks.push_back(before_run_hook([](Session&) { ADD_FAILURE() << "a step"; }));
  {
    const ScopedConfiguration configured(flags({}));
    run.checkpoint_path = "";
    EXPECT_THAT(message_of_run<FailedPrecondition>(run), HasSubstr("begins with trained weights"));
    run.checkpoint_path = directory_.file("stage1");
    run.dim_reduce->pca_mat_path = directory_.file("none.npy");
    EXPECT_THAT(message_of_run<FailedPrecondition>(run), HasSubstr("dim_reduce.weight_load_dir"));
    run.dim_reduce->weight_load_dir = directory_.file("none");
    EXPECT_THAT(message_of_run<FailedPrecondition>(run),
                HasSubstr("holds 0 snapshots, and 8 components need at least 9"));
    run.dim_reduce->weight_load_dir = "";
    run.dim_reduce->from_epoch = 5;
    run.snapshots = SnapshotHookOptions{.every_n_steps = 5};
    EXPECT_THAT(message_of_run<FailedPrecondition>(run), HasSubstr("will have written 4 snapshots"));
    run.dim_reduce->rho = 1;
    EXPECT_THAT(message_of_run<InvalidArgument>(run), HasSubstr("dim_reduce.rho"));
  }
  const ScopedConfiguration configured(flags({"--variable_update=replicated"}));
  EXPECT_THAT(message_of_run<InvalidArgument>(spec("run", 64, "skip")), HasSubstr("replicated_host"));
}

TEST_F(FixtureRun, TheLevelAndTheModeSwitchItOff) {
  const auto digest_with = [&](const std::vector<std::string>& more) {
    const ScopedConfiguration configured(flags(more));
    const std::string name = "run" + std::to_string(more.size()) + (more.empty() ? "" : more[0]);
    RunSpec run = spec(name, 64, "skip");
    run.max_number_of_steps = 3;
    if (more.empty()) run.boost.reset();
    run_or_throw(run);
    return checkpoint_digest(directory_.file(name));
  };
  const std::string ordinary = digest_with({});
  EXPECT_EQ(digest_with({"--boost_level=O0"}), ordinary);
  EXPECT_EQ(digest_with({"--boost.mode=disable_all"}), ordinary);
  EXPECT_EQ(digest_with({"--boost.dim_reduce=false"}), ordinary);
  EXPECT_NE(digest_with({"--boost_level=O2"}), ordinary);
  EXPECT_NE(digest_with({"--boost.mode=enable_all"}), ordinary);
}

// A network with batch normalisation and dropout, trained in one run with both stages.
ModelSpec normalised_model(const Inputs& in, ModeKeys mode) {
  auto [x, y] = in.take<2>();
  auto h = relu(layers::batch_norm(layers::dense(x, 24), mode));
  h = layers::dropout(h, 0.2F, mode);
  auto z = layers::dense(h, 8);
  auto loss = reduce_mean(sparse_softmax_cross_entropy(z, y));
  return {.loss = loss, .log_info = {{"loss", loss}, {"accuracy", accuracy(z, y)}}};
}

class BothStages : public FixtureRun {
 protected:
  // An epoch has 8 steps of 32 samples; stage 1 lasts for five and writes ten snapshots.
  RunSpec spec(const std::string& log_dir, int64_t batch = 32) {
    return {.input_fn =
                [this](ModeKeys mode) {
                  auto data = Dataset::from_arrays({fixture_.at("x"), fixture_.at("y")});
                  return mode == ModeKeys::TRAIN ? data.shuffle(256).repeat() : data;
                },
            .model_fn = normalised_model,
            .optimizer_fn = get_optimizer_fn("momentum", {.learning_rate = 0.05}),
            .inter_mode = ModeKeys::EVAL,
            .batch_size = batch,
            .log_dir = directory_.file(log_dir),
            .max_epochs = 10,
            .snapshots = SnapshotHookOptions{.every_n_steps = 4},
            .boost = BoostOptions{.dim_reduce = true},
            .dim_reduce = DimReduceOptions{.from_epoch = 5, .n_components = 6}};
  }
};

TEST_F(BothStages, InOneRunAndTheSameInTwo) {
  const ScopedConfiguration configured(flags({}));
  testing::internal::CaptureStdout();
  const RunResult one = run_or_throw(spec("one"));
  const std::string output = testing::internal::GetCapturedStdout();
  EXPECT_THAT(output,
              AllOf(HasSubstr("stage 2, in 6 dimensions that explain"), HasSubstr("the search failed in"),
                    HasSubstr("accuracy"), HasSubstr("accepted step lengths: 1 (")));
  EXPECT_EQ(one.global_step, 80);
  EXPECT_EQ(boost::list_snapshots(directory_.file("one/snapshots")).back().step, 40);

  // Stage 1 alone, with the optimizer; its last checkpoint is gone on from in the same data.
  RunSpec first = spec("two");
  first.boost.reset();
  first.max_epochs = 5;
  run_or_throw(first);
  RunSpec second = spec("two");
  second.snapshots.reset();
  second.dim_reduce->from_epoch = 0;
  second.dim_reduce->weight_load_dir = directory_.file("two/snapshots");
  run_or_throw(second);
  expect_equal_variables(directory_.file("one"), directory_.file("two"));
}

TEST_F(BothStages, WhatARunWillNotComeToIsSaid) {
  const auto words_of = [&](const RunSpec& run) {
    const ScopedConfiguration configured(flags({"--log_level=warning"}));
    testing::internal::CaptureStderr();
    testing::internal::CaptureStdout();
    run_or_throw(run);
    return testing::internal::GetCapturedStderr() + testing::internal::GetCapturedStdout();
  };
  RunSpec run = spec("short");
  run.max_epochs = 5;
  EXPECT_THAT(words_of(run), HasSubstr("stage 2 begins after step 40, and the run ends at step 40"));
  run.max_epochs = 6;
  run.snapshots.reset();
  run.dim_reduce->from_epoch = 0;
  run.dim_reduce->weight_load_dir = directory_.file("short/snapshots");
  EXPECT_THAT(words_of(run), AllOf(Not(HasSubstr("begins after")), Not(HasSubstr("no snapshots"))));
  run.max_epochs = 7;
  run.snapshots = SnapshotHookOptions{.every_n_steps = 4, .directory = directory_.file("more")};
  EXPECT_THAT(words_of(run), HasSubstr("no snapshots are written in stage 2"));

  RunSpec early = spec("early");
  early.hooks.push_back(after_run_hook([](Session& session, const StepResult&) {
    if (session.global_step() == 3) session.request_stop("planted");
  }));
  EXPECT_THAT(words_of(early), HasSubstr("stage 2 has not begun"));
}

TEST_F(BothStages, StoppedAndGoneOnWithOnOtherPlacements) {
  const auto configuration = [&](int devices) {
    return flags(
        {"--logical_replicas=2", "--num_devices=" + std::to_string(devices), "--save_model_steps=9"});
  };
  {
    const ScopedConfiguration configured(configuration(1));
    run_or_throw(spec("whole", 16));
  }
  for (const int64_t stop : {30, 40, 41, 63}) {
    const std::string name = "stopped" + std::to_string(stop);
    {
      const ScopedConfiguration configured(configuration(2));
      RunSpec run = spec(name, 16);
      run.hooks.push_back(after_run_hook([stop](Session& session, const StepResult&) {
        if (session.global_step() == stop) session.request_stop("planted");
      }));
      run_or_throw(run);
    }
    const ScopedConfiguration configured(configuration(1));
    EXPECT_EQ(run_or_throw(spec(name, 16)).global_step, 80);
    expect_equal_variables(directory_.file("whole"), directory_.file(name));
  }
}

// What a trial must leave alone: with a search of many failing trials nothing but the steps outside of the
// subspace is seen.
TEST_F(BothStages, TrialsChangeNoMovingAverageAndDrawTheStepsDropout) {
  const auto with_trials = [&](const std::string& name, int64_t trials) {
    const ScopedConfiguration configured(flags({}));
    RunSpec run = spec(name);
    run.dim_reduce->sigma = 0.999999;  // more than a step of this length brings: nearly all trials fail
    run.dim_reduce->max_search = trials;
    run.dim_reduce->rho = 0.999999;
    run.max_epochs = 8;
    run_or_throw(run);
    return variables_in(directory_.file(name));
  };
  const auto few = with_trials("few", 1), many = with_trials("many", 3);
  for (const auto& [name, value] : few) {
    if (name.find("moving") == std::string::npos) continue;
    for (size_t i = 0; i < value.values<float>().size(); ++i)
      EXPECT_FLOAT_EQ(value.values<float>()[i], many.at(name).values<float>()[i]) << name;
  }
}

}  // namespace
}  // namespace mox
