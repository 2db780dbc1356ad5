// torchvision's states become checkpoints for the zoo's networks.
#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "models/zoo/torch_state.h"
#include "models/zoo/zoo.h"
#include "moxing/checkpoint/safetensors.h"
#include "moxing/model/variables.h"
#include "runtime/base/file.h"
#include "runtime/graph/graph.h"
#include "tests/models/torch_fixture.h"

namespace mox {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

// A state of one small tensor a name: import looks at names, types and ranks only.
std::vector<NamedArray> small_state(std::string_view model) {
  std::vector<NamedArray> state;
  for (const auto& [torch, ours] : torch_variable_names(model)) {
    const bool is_dense_kernel =
        ours.find("/fc") != std::string::npos || ours.find("/logits") != std::string::npos;
    const Shape shape = is_dense_kernel && ours.ends_with("/kernel") ? Shape{2, 3} : Shape{4};
    state.push_back({torch, formula_uniform(torch, shape, 0, 1)});
  }
  state.push_back({"any.num_batches_tracked", Array::scalar<int64_t>(3)});
  return state;
}

// A name under the temporary directory that no other run of this test has.
std::string of_this_process(const std::string& name) {
  return testing::TempDir() + name + std::to_string(getpid());
}

std::string shell(const std::string& arguments, int expected_status) {
  const std::string output = of_this_process("mox_import_output");
  const int status = std::system((MOX_BINARY_DIR "/bin/mox " + arguments + " >" + output + " 2>&1").c_str());
  std::string text = read_file(output);
  std::filesystem::remove(output);
  EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, expected_status) << text;
  return text;
}

TEST(Import, NamesAreThoseOfTheZoosVariables) {
  for (const std::string& model : importable_models()) {
    Graph graph;
    const GraphScope scope(graph);
    const ModelMeta meta = get_model_meta(model);
    get_model_fn(model)(graph.input(0, {DType::kFloat32, {1, 3, meta.image_size, meta.image_size}}, {}),
                        ModeKeys::TRAIN);
    std::set<std::string> expected, named;
    for (const Tensor& variable : graph.variables()) expected.insert(graph.spec(variable).name);
    for (const auto& [torch, ours] : torch_variable_names(model)) named.insert(ours);
    EXPECT_EQ(named, expected) << model;
  }
}

TEST(Import, CommandWritesACheckpointAndPrintsTheNames) {
  const std::string folder = of_this_process("mox_import");
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const std::vector<NamedArray> state = small_state("vgg_16_bn");
  write_safetensors(folder + "/state.safetensors", state);
  const std::string command = "import --model vgg_16_bn " + folder + "/state.safetensors " + folder + "/log";
  EXPECT_THAT(
      shell(command, 0),
      AllOf(HasSubstr(
                "features.1.running_var -> vgg_16_bn/conv1/conv1_1/batch_norm/moving_variance float32[4]\n"),
            HasSubstr("classifier.6.weight -> vgg_16_bn/logits/kernel float32[3, 2] transposed\n"),
            HasSubstr("84 variables in ")));
  const Checkpoint checkpoint = load_checkpoint(folder + "/log");
  EXPECT_EQ(checkpoint.global_step, 0);
  ASSERT_EQ(checkpoint.variables.size(), state.size() - 1);
  const Array weight = formula_uniform("classifier.6.weight", {2, 3}, 0, 1);
  for (const NamedArray& variable : checkpoint.variables) {
    if (variable.name != "vgg_16_bn/logits/kernel") continue;
    for (size_t i = 0; i < 6; ++i)
      EXPECT_EQ(variable.value.values<float>()[i % 3 * 2 + i / 3], weight.values<float>()[i]) << i;
  }
  EXPECT_THAT(shell(command, 1), HasSubstr("holds a checkpoint already"));
  EXPECT_THAT(shell("import --model vgg_16 " + folder + "/state.safetensors " + folder + "/other", 1),
              AllOf(HasSubstr("which vgg_16 does not have; is it the state of another network?")));
  EXPECT_FALSE(std::filesystem::exists(folder + "/other"));
  EXPECT_THAT(shell("import --model lenet " + folder + "/state.safetensors " + folder + "/other", 2),
              HasSubstr("no names of torchvision are known for 'lenet'; there are names for: vgg_a"));
  std::filesystem::remove_all(folder);
}

TEST(Import, StatesOfWrappedNetworksAreTheSame) {
  const std::vector<NamedArray> plain = small_state("resnet_v1_18");
  for (const std::string prefix : {"module.", "_orig_mod.", "module._orig_mod.", "model.", "net.backbone."}) {
    std::vector<NamedArray> state = plain;
    std::ranges::reverse(state);
    state.push_back(state.front());
    state.front().name = "bn1.num_batches_tracked";
    for (NamedArray& tensor : state) tensor.name = prefix + tensor.name;
    auto expected = import_torch_state("resnet_v1_18", plain);
    std::ranges::reverse(expected);
    const auto imported = import_torch_state("resnet_v1_18", state);
    ASSERT_EQ(imported.size(), expected.size());
    for (size_t i = 0; i < imported.size(); ++i) {
      EXPECT_EQ(imported[i].torch_name, prefix + expected[i].torch_name);
      EXPECT_EQ(imported[i].variable.name, expected[i].variable.name);
    }
    state.front().name = plain.front().name;  // one without it: another kind of state
    EXPECT_THROW(import_torch_state("resnet_v1_18", state), DataError);
  }
}

// A network whose last layer begins anew needs none.
TEST(Import, AStateMayLackWhatIsNotAskedFor) {
  std::vector<NamedArray> state = small_state("resnet_v1_18");
  std::erase_if(state, [](const NamedArray& tensor) { return tensor.name.starts_with("fc."); });
  EXPECT_EQ(import_torch_state("resnet_v1_18", state, get_model_meta("resnet_v1_18").head).size(), 100u);
  EXPECT_THROW(import_torch_state("resnet_v1_18", state), DataError);
  state.pop_back();
  state.pop_back();
  EXPECT_THAT([&] { import_torch_state("resnet_v1_18", state, get_model_meta("resnet_v1_18").head); },
              ThrowsMessage<DataError>(HasSubstr("lacks 1 of the 102 tensors")));
}

TEST(Import, StatesThatDoNotFitAreRefused) {
  std::vector<NamedArray> state = small_state("resnet_v1_18");
  EXPECT_EQ(import_torch_state("resnet_v1_18", state).size(), 102u);
  auto refuses = [&](const std::string& text) {
    EXPECT_THAT([&] { import_torch_state("resnet_v1_18", state); },
                ThrowsMessage<DataError>(HasSubstr(text)));
  };
  std::erase_if(state, [](const NamedArray& tensor) { return tensor.name == "layer4.1.bn2.running_mean"; });
  refuses("lacks 1 of the 102 tensors of resnet_v1_18: layer4.1.bn2.running_mean");
  state = small_state("resnet_v1_18");
  for (NamedArray& tensor : state)
    if (tensor.name == "fc.weight") tensor.value = Array(DType::kFloat32, {4});
  refuses("'fc.weight' is float32[4]; expected a matrix [out, in]");
  state[0].value = Array(DType::kBFloat16, {4});
  refuses("is bfloat16[4]; expected float32");
  state[0].value = Array(DType::kFloat32, {4});
  state[0].value.values<float>()[2] = std::numeric_limits<float>::quiet_NaN();
  refuses("'bn1.bias' has values that are not finite");
  state = small_state("resnet_v1_34");
  refuses("which resnet_v1_18 does not have");
}

TEST(Export, AStateGoesThereAndBackBitForBit) {
  for (const std::string& model : importable_models()) {
    const std::vector<NamedArray> state = small_state(model);
    std::vector<NamedArray> variables;
    for (ImportedVariable& imported : import_torch_state(model, state))
      variables.push_back(std::move(imported.variable));
    variables.push_back({"of_another_scope", Array::scalar(1.0f)});
    const std::vector<NamedArray> exported = export_torch_state(model, variables, 7);
    std::vector<NamedArray> without_counts;
    size_t counts = 0, averages = 0;
    for (const NamedArray& tensor : exported) {
      averages += tensor.name.ends_with(".running_mean");
      if (!tensor.name.ends_with(".num_batches_tracked")) {
        without_counts.push_back(tensor);
        continue;
      }
      ++counts;
      EXPECT_EQ(tensor.value.type(), (TensorType{DType::kInt64, {}}));
      EXPECT_EQ(tensor.value.values<int64_t>()[0], 7);
    }
    EXPECT_EQ(counts, averages) << model;
    std::vector<NamedArray> before = state;
    before.pop_back();
    EXPECT_EQ(arrays_digest(without_counts), arrays_digest(before)) << model;
  }
}

TEST(Export, CommandWritesWhatImportReads) {
  const std::string folder = of_this_process("mox_export");
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  write_safetensors(folder + "/state.safetensors", small_state("resnet_v1_18"));
  shell("import --model resnet_v1_18 " + folder + "/state.safetensors " + folder + "/log", 0);
  const std::string command =
      "export-torch --model resnet_v1_18 " + folder + "/log " + folder + "/back.safetensors";
  EXPECT_THAT(shell(command, 0), AllOf(HasSubstr("122 tensors of '"), HasSubstr("checkpoint-0")));
  shell("import --model resnet_v1_18 " + folder + "/back.safetensors " + folder + "/again", 0);
  EXPECT_EQ(checkpoint_digest(folder + "/again"), checkpoint_digest(folder + "/log"));
  EXPECT_THAT(shell(command, 1), HasSubstr("exists already"));
  EXPECT_THAT(shell("export-torch --model resnet_v1_34 " + folder + "/log " + folder + "/other", 1),
              AllOf(HasSubstr("there is no value for"), HasSubstr("another network's checkpoint")));
  std::filesystem::remove_all(folder);
}

TEST(Export, WhatDoesNotFitIsRefused) {
  std::vector<NamedArray> variables;
  for (ImportedVariable& imported : import_torch_state("resnet_v1_18", small_state("resnet_v1_18")))
    variables.push_back(std::move(imported.variable));
  auto refuses = [&](const std::string& text) {
    EXPECT_THAT([&] { export_torch_state("resnet_v1_18", variables, 0); },
                ThrowsMessage<DataError>(HasSubstr(text)));
  };
  variables.push_back({"resnet_v1_18/attention/kernel", Array::scalar(1.0f)});
  refuses("'resnet_v1_18/attention/kernel' has no counterpart");
  variables.pop_back();
  for (NamedArray& variable : variables)
    if (variable.name == "resnet_v1_18/logits/kernel") variable.value = Array(DType::kFloat32, {4});
  refuses("'resnet_v1_18/logits/kernel' is float32[4]; expected float32 [in, out]");
}

TEST(Export, ZeroClassesAreTheFeaturesAlone) {
  Graph graph;
  const GraphScope scope(graph);
  const Tensor images = graph.input(0, {DType::kFloat32, {2, 3, 32, 32}}, {});
  const NetworkOutput output = get_model_fn("resnet_v1_18", {.num_classes = 0})(images, ModeKeys::TRAIN);
  EXPECT_EQ(output.logits.shape(), (Shape{2, 512}));
  for (const Tensor& variable : graph.variables())
    EXPECT_FALSE(is_in_scope(graph.spec(variable).name, get_model_meta("resnet_v1_18").head));
}

TEST(Export, EveryNetworksHeadIsInItsMeta) {
  for (const std::string& name : model_names()) {
    const auto variables_for = [&](int64_t classes) {
      Graph graph;
      const GraphScope scope(graph);
      const ModelMeta meta = get_model_meta(name);
      const Tensor images =
          graph.input(0, {DType::kFloat32, {1, meta.channels, meta.image_size, meta.image_size}}, {});
      get_model_fn(name, {.num_classes = classes})(images, ModeKeys::EVAL);
      std::map<std::string, Shape> shapes;
      for (const Tensor& variable : graph.variables())
        shapes.emplace(graph.spec(variable).name, variable.shape());
      return shapes;
    };
    const std::string head = get_model_meta(name).head;
    const auto five = variables_for(5), seven = variables_for(7);
    for (const auto& [variable, shape] : five)
      EXPECT_EQ(shape != seven.at(variable), is_in_scope(variable, head)) << variable;
  }
}

}  // namespace
}  // namespace mox
