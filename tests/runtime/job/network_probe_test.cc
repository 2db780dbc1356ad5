#include "runtime/job/network_probe.h"

#include <gtest/gtest.h>

#include "tests/runtime/comm/thread_ranks.h"

namespace mox::internal {
namespace {

TEST(NetworkProbe, MeasuresWhatAMessageCosts) {
  for (const int ranks : {2, 3})
    run_ranks(ranks, [](Communicator& communicator) {
      const NetworkCosts costs = measure_network(communicator);
      EXPECT_GT(costs.latency_s, 0);
      EXPECT_GE(costs.message_work_s, 0);
      communicator.barrier();  // no message of the probe is left over
    });
}

TEST(NetworkProbe, FindsNoCostsInARankAlone) {
  Communicator alone;
  const NetworkCosts costs = measure_network(alone);
  EXPECT_EQ(costs.latency_s, 0);
  EXPECT_EQ(costs.message_work_s, 0);
}

}  // namespace
}  // namespace mox::internal
