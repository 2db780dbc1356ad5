// What an optimizer keeps where the system refuses the memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "moxing/engine/step/parameter_updater.h"
#include "moxing/optimizers/optimizer.h"
#include "runtime/base/error.h"
#include "tests/support/limited_addresses.h"
#include "tests/support/sanitizers.h"
#include "tests/support/without_privileges.h"

namespace mox::internal {
namespace {

TEST(SlotMemory, ThatIsRefusedIsNamed) {
  if (kReservesAddressSpace)
    GTEST_SKIP() << "needs a build without sanitizers, which want more address space than a limit leaves";
  EXPECT_THAT(message_without_privileges<OutOfMemory>([] {
                const Team team(1);
                Array variable(DType::kFloat32, {1 << 24});
                ParameterUpdater updater(
                    get_optimizer_fn("momentum", {.learning_rate = 0.1})(),
                    [&](std::string_view) { return variable; }, {}, team, LossScale());
                limit_addresses(32 << 20);
                const std::vector<std::string> names = {"dense/kernel"};
                updater.declare(names);
              }),
              testing::AllOf(testing::HasSubstr("for the variable 'dense/kernel' as 'momentum' does not fit"),
                             testing::HasSubstr("67108864 bytes of memory"),
                             testing::HasSubstr("choose an optimizer that keeps less")));
}

TEST(SlotMemory, OfACheckpointThatIsRefusedIsNamed) {
  if (kReservesAddressSpace)
    GTEST_SKIP() << "needs a build without sanitizers, which want more address space than a limit leaves";
  EXPECT_THAT(
      message_without_privileges<OutOfMemory>([] {
        const Team team(1);
        Array kept(DType::kFloat32, {1 << 24});
        limit_addresses(32 << 20);
        ParameterUpdater updater(
            get_optimizer_fn("momentum", {.learning_rate = 0.1})(), [&](std::string_view) { return kept; },
            {.slots = {{"dense/kernel/momentum", kept}}}, team, LossScale());
      }),
      testing::AllOf(testing::HasSubstr("kept in a checkpoint as 'dense/kernel/momentum' does not fit"),
                     testing::HasSubstr("67108864 bytes of memory"),
                     testing::HasSubstr("choose an optimizer that keeps less")));
}

}  // namespace
}  // namespace mox::internal
