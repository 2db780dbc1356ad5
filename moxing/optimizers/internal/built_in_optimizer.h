// What get_optimizer_fn puts inside an OptimizerFn: the configuration finds it there (std::function::target)
// and can change its options before the optimizer is made.
#pragma once

#include <memory>
#include <string>

#include "moxing/optimizers/optimizer.h"

namespace mox::internal {

struct BuiltInOptimizerFn {
  std::string name;
  OptimizerOptions options;
  std::unique_ptr<Optimizer> operator()() const;
};

}  // namespace mox::internal
