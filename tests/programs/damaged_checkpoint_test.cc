// Checkpoints with flipped bytes, cut off or missing files: refused with the way to go on, and nothing else
// is touched.
#include <filesystem>

#include "moxing/checkpoint/checkpoint.h"
#include "runtime/base/file.h"
#include "tests/programs/training.h"

namespace mox {
namespace {

class DamagedCheckpoint : public TrainingTest, public testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    expect_success(
        train("mnist_softmax", log_dir_, 10, {"--save_model_steps=5", "--optimizer.name=momentum"}));
    older_ = log_dir_ + "/checkpoint-5";
    newest_ = log_dir_ + "/checkpoint-10";
    file_ = newest_ + "/" + GetParam();
    good_ = read_file(file_);
  }
  void expect_refused() {
    const std::string before = checkpoint_digest(older_);
    const std::vector<std::string> says = {newest_, GetParam(),
                                           "newest older checkpoint that is intact is '" + older_};
    expect_error(go_on(), says);
    expect_error(go_on({"--run_mode=eval"}), says);
    EXPECT_EQ(checkpoint_digest(older_), before);
    EXPECT_TRUE(std::filesystem::exists(newest_)) << "the damaged one is kept for its owner to look at";
  }
  ProcessResult go_on(const Words& flags = {}) const {
    return train("mnist_softmax", log_dir_, 20,
                 Words{"--save_model_steps=5", "--optimizer.name=momentum"} + flags);
  }
  std::string older_, newest_, file_, good_;
};

TEST_P(DamagedCheckpoint, AnyFlippedByteIsRefused) {
  const size_t last = good_.size() - 1;
  for (size_t position : {size_t{0}, size_t{9}, last / 3, last / 2, last}) {
    SCOPED_TRACE(position);
    flip_byte(file_, position);
    expect_refused();
    write_file_atomically(file_, good_);
  }
  expect_success(go_on());
}

TEST_P(DamagedCheckpoint, ACutOffOrMissingFileIsRefusedAndTheAdviceWorks) {
  std::filesystem::resize_file(file_, good_.size() / 2);
  expect_refused();
  std::filesystem::resize_file(file_, 0);
  expect_refused();
  std::filesystem::remove(file_);
  expect_refused();

  std::filesystem::rename(newest_, log_dir_ + "/damaged");  // as the message says
  const ProcessResult rest = go_on();
  expect_success(rest);
  EXPECT_THAT(rest.err, testing::HasSubstr("continuing from '" + older_ + "' at global step 5"));
  const std::string whole = fresh("whole");
  expect_success(train("mnist_softmax", whole, 20, {"--save_model_steps=5", "--optimizer.name=momentum"}));
  EXPECT_TRUE(latest_content(log_dir_) == latest_content(whole));
}

INSTANTIATE_TEST_SUITE_P(Files, DamagedCheckpoint,
                         testing::Values("variables.safetensors", "optimizer.safetensors", "state.json"),
                         [](const auto& info) {
                           const std::string file = info.param;
                           return file.substr(0, file.find('.'));
                         });

}  // namespace
}  // namespace mox
