// Checkpoints that an older tree has saved are continued as that tree continued them
// (tests/fixtures/checkpoints; how they were made says make_checkpoint_fixtures.sh beside them).
#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <regex>

#include "moxing/checkpoint/checkpoint.h"
#include "ops/processor/compute_library.h"
#include "ops/processor/processor.h"
#include "runtime/base/file.h"
#include "tests/programs/training.h"

namespace mox {
namespace {

namespace fs = std::filesystem;

// Whether this program computes with what has made the fixtures: another release of oneDNN, or another
// compiler, rounds sums in other places.
bool has_the_same_kernels() {
#if defined(__clang__) || __GNUC__ != 12
  return false;
#else
  return compute_library() == "oneDNN 2.6.3";
#endif
}

// Without what is kept of the data themselves in a cursor, and its checksum with it, and the steps that hooks
// know, of the best and of the last evaluation: the older tree had none of these.
std::string without_what_is_new(const std::string& text) {
  static const std::regex kNew(
      R"x(,\\"contents\\":\[[^\]]*\]|,\\"checksum\\":[0-9]+|\\"(best|counted)_step\\":[0-9]+,)x");
  return std::regex_replace(text, kNew, "");
}

// state.json without its checksum, without the name of the processor, which has no part in what is computed,
// and without what the older tree did not have.
std::string comparable_state(const std::string& checkpoint) {
  constexpr std::array kLeftOut = {"  \"crc32\": ", "    \"processor\": ", "    \"process_threads\": ",
                                   "    \"evaluation_data\": ", "      \"evaluation_summary\": "};
  std::ifstream file(checkpoint + "/state.json");
  std::string kept;
  for (std::string line; std::getline(file, line);)
    if (std::ranges::none_of(kLeftOut, [&](const char* begin) { return line.starts_with(begin); }))
      kept += line + '\n';
  return without_what_is_new(kept);
}

void expect_close(const std::vector<NamedArray>& now, const std::vector<NamedArray>& before) {
  ASSERT_EQ(now.size(), before.size());
  for (size_t i = 0; i < now.size(); ++i) {
    EXPECT_EQ(now[i].name, before[i].name);
    ASSERT_EQ(now[i].value.type(), before[i].value.type());
    const auto a = now[i].value.values<float>(), b = before[i].value.values<float>();
    for (size_t k = 0; k < a.size(); ++k)
      EXPECT_NEAR(a[k], b[k], 1e-3 * std::max(1.0F, std::abs(b[k]))) << now[i].name;
  }
}

class KeptCheckpoint : public TrainingTest {
 protected:
  // Continues the kind's checkpoint with the instructions that it was made with.
  void expect_continued(const std::string& kind) {
    const std::string kept = MOX_SOURCE_DIR "/tests/fixtures/checkpoints/" + kind;
    const std::string ended = latest_checkpoint(kept + "/ended").value();
    fs::copy(kept + "/begun", log_dir_, fs::copy_options::recursive);
    Words command{"kept_training", "--train_url=" + log_dir_, "--log_level=error",
                  "--max_number_of_steps=" + std::to_string(load_checkpoint(ended).global_step)};
    std::ifstream flags(kept + "/flags");
    for (std::string flag; std::getline(flags, flag);) command.push_back(flag);
    expect_success(run_process(command));

    const std::string continued = latest_checkpoint(log_dir_).value();
    if (has_the_same_kernels()) {
      for (const char* file : {"/variables.safetensors", "/optimizer.safetensors"})
        EXPECT_TRUE(read_file(continued + file) == read_file(ended + file)) << file;
      EXPECT_EQ(comparable_state(continued), comparable_state(ended));
    } else {
      const Checkpoint now = load_checkpoint(continued), before = load_checkpoint(ended);
      expect_close(now.variables, before.variables);
      expect_close(now.optimizer_slots, before.optimizer_slots);
      EXPECT_EQ(now.global_step, before.global_step);
      EXPECT_EQ(without_what_is_new(now.state.at("data_cursor")),
                without_what_is_new(before.state.at("data_cursor")));
    }
  }
};

TEST_F(KeptCheckpoint, OfOneReplica) { expect_continued("one_replica"); }

TEST_F(KeptCheckpoint, OfFourReplicas) { expect_continued("four_replicas"); }

TEST_F(KeptCheckpoint, WithALossScale) { expect_continued("loss_scaling"); }

TEST_F(KeptCheckpoint, WithHooksThatHaveAState) { expect_continued("stateful_hooks"); }

TEST_F(KeptCheckpoint, InBFloat16) {
  if (!available_processor().bfloat16_products) GTEST_SKIP() << "needs AVX512_BF16";
  expect_continued("bf16");
}

}  // namespace
}  // namespace mox
