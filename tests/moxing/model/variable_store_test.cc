#include "moxing/model/variable_store.h"

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include "moxing/model/variables.h"
#include "runtime/base/error.h"
#include "runtime/graph/graph.h"
#include "tests/support/evaluate.h"
#include "tests/support/limited_addresses.h"
#include "tests/support/sanitizers.h"
#include "tests/support/without_privileges.h"

namespace mox {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Declares one variable called "w" of this shape.
void declare(VariableStore& store, const Shape& shape, const char* name = "w") {
  Graph graph;
  GraphScope scope(graph);
  get_variable(name, shape, ones());
  store.declare(graph);
}

NamedArray filled(const std::string& name, const Shape& shape, float value) {
  Array array(DType::kFloat32, shape);
  for (float& element : array.values<float>()) element = value;
  return {name, array};
}

TEST(VariableStoreTest, KeepsTheMemoryOfAVariable) {
  VariableStore store(1);
  declare(store, {2});
  Array w = store.get("w");
  w.values<float>()[0] = 5;
  declare(store, {2});  // by another graph of the same model
  EXPECT_EQ(store.get("w").data(), w.data());
  EXPECT_EQ(store.get("w").values<float>()[0], 5);
  EXPECT_TRUE(store.has("w"));
  EXPECT_FALSE(store.has("v"));
}

TEST(VariableStoreTest, RestoredValuesWinOverInitialOnesAndAreCopies) {
  VariableStore store(1);
  const NamedArray saved = filled("w", {2}, 3), other = filled("other", {1}, 4);
  store.restore(std::vector{saved, other});
  declare(store, {2});
  EXPECT_EQ(store.get("w").values<float>()[1], 3);
  EXPECT_NE(store.get("w").data(), saved.value.data());
  EXPECT_THAT(store.unclaimed(), ElementsAre("other"));
  declare(store, {1}, "other");
  EXPECT_THAT(store.unclaimed(), IsEmpty());
}

TEST(VariableStoreTest, NamesTheVariableOfACheckpointThatDoesNotFit) {
  if (kReservesAddressSpace)
    GTEST_SKIP() << "needs a build without sanitizers, which want more address space than a limit leaves";
  EXPECT_THAT(message_without_privileges<OutOfMemory>([] {
                const std::vector saved = {filled("layer/weights", {1 << 24}, 3)};
                limit_addresses(32 << 20);
                VariableStore(1).restore(saved);
              }),
              AllOf(HasSubstr("the variable 'layer/weights' of a checkpoint does not fit"),
                    HasSubstr("67108864 bytes of memory"), HasSubstr("make the model smaller")));
}

TEST(VariableStoreTest, SaysWhatIsMissing) {
  VariableStore store(1);
  declare(store, {2}, "layer/weights");
  EXPECT_THAT(message_of<NotFound>([&] { store.get("layer/weight"); }), HasSubstr("layer/weights"));
  store.restore(std::vector{filled("v", {1}, 0)});
  store.require_restored("/some/checkpoint");
  EXPECT_THAT(message_of<NotFound>([&] { declare(store, {1}, "w"); }),
              AllOf(HasSubstr("/some/checkpoint"), HasSubstr("variables: w (made at"),
                    HasSubstr("variable_store_test.cc:"), HasSubstr("v")));
}

TEST(VariableStoreTest, AnEmptyStoreSaysThatThereAreNone) {
  const VariableStore store(1);
  EXPECT_THAT(message_of<NotFound>([&] { store.get("w"); }), HasSubstr("there are none"));
}

TEST(VariableStoreTest, RefusesAnotherType) {
  VariableStore store(1);
  declare(store, {2});
  EXPECT_THAT(message_of<InvalidArgument>([&] { declare(store, {3}); }),
              AllOf(HasSubstr("[2]"), HasSubstr("[3]")));
  VariableStore restored(1);
  restored.restore(std::vector{filled("w", {4}, 0)});
  EXPECT_THAT(message_of<InvalidArgument>([&] { declare(restored, {3}); }),
              AllOf(HasSubstr("[4]"), HasSubstr("[3]")));
}

}  // namespace
}  // namespace mox
