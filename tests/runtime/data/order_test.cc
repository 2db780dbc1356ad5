#include <gtest/gtest.h>

#include "runtime/data/dataset.h"
#include "runtime/data/pipeline.h"

namespace mox {
namespace {

TEST(Order, Smoke) {
  Dataset d = Dataset::from_arrays({Array::from<int32_t>({5}, {0, 1, 2, 3, 4})});
  Pipeline p(d.batch(2), {});
  Batch b;
  std::vector<int> got;
  while (p.next(&b))
    for (int v : b.components[0].values<int32_t>()) got.push_back(v);
  EXPECT_EQ(got, (std::vector<int>{0, 1, 2, 3, 4}));
}

}  // namespace
}  // namespace mox
