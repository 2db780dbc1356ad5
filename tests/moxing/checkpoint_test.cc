#include "moxing/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "runtime/base/error.h"
#include "runtime/base/file.h"

namespace mox {
namespace {
TEST(Checkpoint, ComesBackAsItWasSaved) {
  std::string dir = testing::TempDir() + "/checkpoint_round_trip";
  std::filesystem::remove_all(dir);
  Checkpoint c{.global_step = 3,
               .variables = {{"w", Array::from<float>({2}, {1, 2})}},
               .optimizer_slots = {},
               .state = {{"a", "{\"x\": 1}"}}};
  auto p = save_checkpoint(dir, c);
  auto d = load_checkpoint(dir);
  EXPECT_EQ(d.global_step, 3);
  EXPECT_EQ(d.state["a"], "{\"x\":1}");
  EXPECT_EQ(d.variables.size(), 1u);
}
}  // namespace
}  // namespace mox
