#include "runtime/interruption/interruption.h"

#include <gtest/gtest.h>

#include <thread>

namespace mox::internal {
namespace {

TEST(Interruptible, EndsWorkOfItsThreadWhileItIsAlive) {
  std::atomic<int> wish{0}, other{15};
  throw_if_interrupted();
  {
    const Interruptible outer(wish);
    throw_if_interrupted();
    wish = 2;
    EXPECT_THROW(throw_if_interrupted(), Interrupted);
    std::thread([] { throw_if_interrupted(); }).join();
    wish = 0;
    {
      const Interruptible inner(other);
      EXPECT_THROW(throw_if_interrupted(), Interrupted);
    }
    throw_if_interrupted();
    wish = 2;
  }
  throw_if_interrupted();
}

}  // namespace
}  // namespace mox::internal
