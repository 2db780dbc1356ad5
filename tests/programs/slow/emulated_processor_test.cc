// What docs/determinism.md promises of processors without AVX-512: a run that is limited to AVX2 on any
// machine has the bits that a processor with AVX2 alone makes, whatever its caches. The other processors are
// emulated (qemu-user), with other caches than this machine's: 4 MiB and 16 MiB with Intel's leaves, 512 KiB
// and 32 MiB with AMD's.
#include <filesystem>
#include <string>
#include <tuple>

#include "tests/programs/training.h"

namespace mox {
namespace {

constexpr const char* kEmulator = "/usr/bin/qemu-x86_64";

struct Network {
  const char* name;
  const char* program;
  int64_t steps;
  Words flags;
};

void PrintTo(const Network& network, std::ostream* stream) { *stream << network.name; }

// Of small images, 28 x 28, and batches: an emulated processor multiplies a hundred times slower.
Words classifier(const std::string& network) {
  return {"--data.format=mnist", "--model.name=" + network, "--batch_size=2"};
}

// One test a processor, so that they run side by side: an emulated run takes minutes.
class EmulatedProcessor : public TrainingTest,
                          public testing::WithParamInterface<std::tuple<Network, std::string>> {
 protected:
  // The digest after the network's steps by `launcher`.
  std::string digest_of(const std::string& name, const Words& launcher) {
    const std::string log_dir = fresh(name);
    const Network& network = std::get<0>(GetParam());
    const std::string path = std::string(MOX_BINARY_DIR) + "/bin/" + network.program;
    Process process(launcher + training(path, log_dir, network.steps, network.flags + Words{"--threads=1"}));
    expect_success(process.wait(800));
    return run_process({"mox", "checkpoint", "digest", log_dir}).out;
  }
};

TEST_P(EmulatedProcessor, HasTheBitsOfALimitedRun) {
  if (!std::filesystem::exists(kEmulator)) GTEST_SKIP() << "needs qemu-x86_64";
  write_small_data(data_, 300, 4);  // an evaluation that takes as little as a step
  const std::string limited = digest_of("limited", {"/usr/bin/env", "ONEDNN_MAX_CPU_ISA=AVX2"});
  EXPECT_FALSE(limited.empty());
  EXPECT_EQ(digest_of("emulated", {kEmulator, "-cpu", std::get<1>(GetParam())}), limited);
}

const auto kNetworks =
    testing::Values(Network{"resnet_v1_20", "image_classifier", 20, classifier("resnet_v1_20")},
                    Network{"mobilenet_v2", "image_classifier", 20, classifier("mobilenet_v2")},
                    Network{"lenet", "fashion_lenet", 20, {"--batch_size=2"}});

INSTANTIATE_TEST_SUITE_P(Networks, EmulatedProcessor,
                         testing::Combine(kNetworks,
                                          testing::Values(std::string("Haswell"), std::string("EPYC-Milan"))),
                         [](const auto& info) {
                           const std::string& processor = std::get<1>(info.param);
                           return std::string(std::get<0>(info.param).name) +
                                  (processor == "Haswell" ? "_Haswell" : "_Milan");
                         });

}  // namespace
}  // namespace mox
