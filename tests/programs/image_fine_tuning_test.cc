// The pre-set job on images that starts from what exists, and for which classes count differently.
#include <gmock/gmock.h>

#include <algorithm>

#include "moxing/checkpoint/checkpoint.h"
#include "moxing/checkpoint/safetensors.h"
#include "tests/programs/image_classifier_test.h"

namespace mox {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

using ImageFineTuning = ImageClassifierTest;
using ImageClassWeights = ImageClassifierTest;

TEST_F(ImageClassWeights, CountInTheLossAndInMetrics) {
  write_images();
  // A class without weight is not learnt, and not counted where accuracy is measured.
  write("run.yaml", "class_weights: [dark=0, light=2]\n");
  const Words weighted{"--config=" + folder_ + "/run.yaml"};
  const ProcessResult result = run_process(job(weighted));
  expect_success(result);
  EXPECT_THAT(result.out, HasSubstr("test accuracy: 1.0"));
  const auto measured = [&](const Words& flags, const std::string& name) {
    const ProcessResult evaluated = run_process(job(Words{"--run_mode=eval"} + flags));
    expect_success(evaluated);
    const std::string before = "test " + name + ": ";
    const size_t at = evaluated.out.find(before);
    EXPECT_NE(at, std::string::npos) << evaluated.out;
    return std::stod(evaluated.out.substr(at + before.size()));
  };
  EXPECT_EQ(measured({}, "accuracy"), 0.5);
  EXPECT_EQ(measured({"--class_weights=light=0"}, "accuracy"), 0);
  EXPECT_EQ(measured({"--class_weights=light=3"}, "accuracy"), 0.75);
  // The loss is the mean over samples of what each counts, half of them of either class.
  const double dark = measured({"--class_weights=light=0"}, "loss"),
               light = measured({"--class_weights=dark=0"}, "loss");
  EXPECT_NEAR(measured({}, "loss"), dark + light, 2e-4);
  EXPECT_NEAR(measured({"--class_weights=dark=3,light=0.5"}, "loss"), 3 * dark + light / 2, 4e-4);
  expect_success(run_process(
      job({"--class_weights=dark=2", "--augmentation.mix_up=0.2", "--train_url=" + fresh("mixed")})));
}

TEST_F(ImageClassWeights, ThatMakeNoSenseAreRefused) {
  write_images();
  for (const auto& [given, said] :
       {std::pair{"drak=2", "the data has no class 'drak'; its classes are: dark, light"},
        {"dark", "'dark' has no '='"},
        {"dark=heavy", "the weight of 'dark' is 'heavy'"},
        {"dark=-1", "the weight of 'dark' is '-1'"},
        {"dark=nan", "the weight of 'dark' is 'nan'"},
        {"dark=1,dark=2", "'dark' is there twice"},
        {"dark=0,light=0", "all classes have the weight 0"}})
    expect_error(run_process(job({std::string("--class_weights=") + given})), {said}, 2);
}

TEST_F(ImageFineTuning, TakesACheckpointForOtherClasses) {
  write_images();
  expect_success(run_process(job({})));
  const Checkpoint before = load_checkpoint(log_dir_);
  for (const char* split : {"train", "validation"})
    for (int i = 0; i < 8; ++i)  // 32 images: four steps an epoch
      write(std::string(split) + "/red/" + std::to_string(i) + ".jpg",
            image::encode_jpeg(image::picture(40, 40, static_cast<uint64_t>(i))));
  const std::string tuned = fresh("fine_tuned");
  const auto tune = [&](const Words& flags) {
    return run_process(
        job(Words{"--train_url=" + tuned, "--model.pretrained=" + log_dir_, "--seed=2", "--log_level=info"} +
            flags));
  };
  const auto value = [](const Checkpoint& checkpoint, const std::string& name) {
    for (const NamedArray& variable : checkpoint.variables)
      if (variable.name == name) {
        const auto values = variable.value.values<float>();
        return std::vector<float>(values.begin(), values.end());
      }
    ADD_FAILURE() << name;
    return std::vector<float>();
  };
  // One epoch of the last layer alone.
  const ProcessResult frozen = tune({"--max_epochs=1", "--model.freeze_epochs=1"});
  expect_success(frozen);
  EXPECT_THAT(frozen.err, HasSubstr("freeze: 8 of 10 variables are not trained"));
  EXPECT_THAT(frozen.err, testing::Not(HasSubstr("is not read")));
  const Checkpoint first = load_checkpoint(tuned);
  EXPECT_EQ(value(first, "cifarnet/conv1/kernel"), value(before, "cifarnet/conv1/kernel"));
  EXPECT_EQ(value(first, "cifarnet/logits/bias").size(), 3u);
  // The same run goes on with all of them; what is frozen is over.
  const ProcessResult whole = tune({"--max_epochs=2", "--model.freeze_epochs=1"});
  expect_success(whole);
  EXPECT_THAT(whole.err, testing::Not(HasSubstr("freeze: ")));
  EXPECT_THAT(whole.err, HasSubstr("model.pretrained '" + log_dir_ + "' is not read"));
  const Checkpoint second = load_checkpoint(tuned);
  EXPECT_EQ(second.global_step, 2 * first.global_step);
  EXPECT_NE(value(second, "cifarnet/conv1/kernel"), value(before, "cifarnet/conv1/kernel"));
  // In one start it is the same, bit for bit.
  const std::string digest = checkpoint_digest(tuned);
  fs::remove_all(tuned);
  expect_success(tune({"--max_epochs=2", "--model.freeze_epochs=1"}));
  EXPECT_EQ(checkpoint_digest(tuned), digest);
  // A typo is not passed over by a run that would not need it.
  expect_error(tune({"--model.pretrained=/nowhere/at/all", "--max_epochs=3"}),
               {"model.pretrained is '/nowhere/at/all' (command line)", "no such file or directory"}, 2);
  expect_error(tune({"--checkpoint_path=" + log_dir_}), {"model.pretrained", "checkpoint_path"}, 2);
  fs::remove_all(tuned);
  expect_error(tune({"--model.name=lenet"}), {"no variables of the network lenet"}, 2);
  expect_error(tune({"--model.pretrained=", "--model.freeze_epochs=1"}), {"learnt nothing would be frozen"},
               2);
}

TEST_F(ImageFineTuning, SmallImagesComeFirst) {
  write_images();
  const Words one{"--model.name=resnet_v1_20", "--max_epochs=1", "--log_level=info"};
  expect_success(run_process(job(one)));
  const ProcessResult result =
      run_process(job(one + Words{"--train_url=" + fresh("fine_tuned"), "--model.pretrained=" + log_dir_,
                                  "--pretraining.image_size=24", "--pretraining.epochs=1"}));
  expect_success(result);
  EXPECT_THAT(result.err, testing::Not(HasSubstr("is not read")));
  // They would train what is to be frozen after them.
  expect_error(run_process(job(one + Words{"--train_url=" + fresh("refused"),
                                           "--model.pretrained=" + log_dir_, "--model.freeze_epochs=1",
                                           "--pretraining.image_size=24", "--pretraining.epochs=1"})),
               {"pretraining.image_size is 24", "model.freeze_epochs is 1", "Leave one of the two out"}, 2);
}

TEST_F(ImageFineTuning, FrozenPassesAreNotStoppedEarly) {
  write_images();
  expect_success(run_process(job({"--max_epochs=1"})));
  const std::string tuned = fresh("fine_tuned"), snapshots = tuned + "/snapshots";
  // At this rate nothing gets better.
  expect_success(run_process(job({"--train_url=" + tuned, "--model.pretrained=" + log_dir_, "--max_epochs=5",
                                  "--model.freeze_epochs=4", "--optimizer.learning_rate=1e-12",
                                  "--eval_every_n_epochs=1", "--early_stopping.metric=accuracy",
                                  "--early_stopping.patience=1", "--snapshots.every_n_epochs=1"})));
  EXPECT_EQ(load_checkpoint(tuned).global_step, 15);
  EXPECT_TRUE(fs::exists(snapshots + "/snapshot-15.safetensors"));
  EXPECT_FALSE(fs::exists(snapshots + "/snapshot-12.safetensors")) << "holds the last layer alone";
}

// A state with torchvision's names and shapes, as mox export-torch writes it, for other classes.
TEST_F(ImageFineTuning, TakesATorchvisionStateIntoFiveClasses) {
  write_images();
  const Words resnet{"--model.name=resnet_v1_18", "--max_epochs=1"};
  expect_success(run_process(job(resnet)));
  const std::string state = fresh("state") + ".safetensors", tuned = fresh("fine_tuned");
  expect_success(run_process({"mox", "export-torch", "--model", "resnet_v1_18", log_dir_, state}));
  for (const char* split : {"train", "validation"})
    for (const char* name : {"red", "green", "blue"})
      for (int i = 0; i < 4; ++i)
        write(std::string(split) + "/" + name + "/" + std::to_string(i) + ".jpg",
              image::encode_jpeg(image::picture(40, 40, static_cast<uint64_t>(i))));
  const auto tune = [&](const Words& flags) {
    return run_process(job(resnet +
                           Words{"--train_url=" + tuned, "--model.pretrained=" + state,
                                 "--model.freeze_epochs=1", "--log_level=info"} +
                           flags));
  };
  const ProcessResult frozen = tune({});
  expect_success(frozen);
  EXPECT_THAT(frozen.err, testing::AllOf(HasSubstr("100 of the model's 102 variables are from"),
                                         HasSubstr("resnet_v1_18/logits/kernel")));
  // What was frozen is as the state says, to the bit; the head is of five classes.
  const Checkpoint start = load_checkpoint(log_dir_), first = load_checkpoint(tuned);
  ASSERT_EQ(first.variables.size(), start.variables.size());
  for (size_t i = 0; i < start.variables.size(); ++i) {
    const NamedArray &before = start.variables[i], &after = first.variables[i];
    ASSERT_EQ(after.name, before.name);
    if (before.name.starts_with("resnet_v1_18/logits/")) {
      EXPECT_EQ(after.value.shape()[after.value.shape().rank() - 1], 5) << after.name;
    } else {
      EXPECT_TRUE(std::ranges::equal(after.value.values<float>(), before.value.values<float>()))
          << after.name;
    }
  }
  // Then all of it is trained, in the same run; and what came out is a state for PyTorch again.
  expect_success(tune({"--max_epochs=2"}));
  const std::string back = fresh("back") + ".safetensors";
  expect_success(run_process({"mox", "export-torch", "--model", "resnet_v1_18", tuned, back}));
  const SafetensorsFile written = read_safetensors(back), read = read_safetensors(state);
  ASSERT_EQ(written.tensors.size(), read.tensors.size());
  bool is_trained = false;
  for (const NamedArray& tensor : written.tensors) {
    const auto same =
        std::ranges::find(read.tensors, tensor.name, [](const NamedArray& other) { return other.name; });
    ASSERT_NE(same, read.tensors.end()) << tensor.name;
    if (tensor.name == "fc.bias") {
      EXPECT_EQ(tensor.value.shape(), (Shape{5}));
    } else if (tensor.name == "fc.weight") {
      EXPECT_EQ(tensor.value.shape(), (Shape{5, 512}));
    } else {
      EXPECT_EQ(tensor.value.shape(), same->value.shape()) << tensor.name;
    }
    if (tensor.name == "conv1.weight")
      is_trained = !std::ranges::equal(tensor.value.values<float>(), same->value.values<float>());
  }
  EXPECT_TRUE(is_trained);
}

}  // namespace
}  // namespace mox
