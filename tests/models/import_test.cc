// torchvision's states become checkpoints for the zoo's networks.
#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "models/zoo/torch_state.h"
#include "models/zoo/zoo.h"
#include "moxing/checkpoint/safetensors.h"
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
  const std::string text = read_file(output);
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
  EXPECT_THAT(shell("import --model lenet " + folder + "/state.safetensors " + folder + "/other", 1),
              HasSubstr("no names of torchvision are known for 'lenet'; there are names for: vgg_a"));
  std::filesystem::remove_all(folder);
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
  state = small_state("resnet_v1_34");
  refuses("which resnet_v1_18 does not have");
}

}  // namespace
}  // namespace mox
