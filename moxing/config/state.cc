#include "moxing/config/state.h"

#include <fmt/format.h>

#include <memory>
#include <mutex>
#include <vector>

#include "moxing/config/uncaught.h"
#include "runtime/base/error.h"

namespace mox::internal {
namespace {

struct Stack {
  std::mutex mutex;
  std::vector<std::unique_ptr<ConfigState>> states;  // the last one is current; never empty
};

Stack& stack() {
  static Stack instance;
  return instance;
}

ConfigState* current(Stack* stack) {
  if (stack->states.empty()) stack->states.push_back(std::make_unique<ConfigState>());
  return stack->states.back().get();
}

}  // namespace

void with_config(const std::function<void(ConfigState*)>& use) {
  const std::lock_guard lock(stack().mutex);
  use(current(&stack()));
}

void with_configured(std::string_view function, const std::function<void(ConfigStore*)>& use) {
  with_config([&](ConfigState* state) {
    if (!state->configured) {
      report_uncaught_exceptions();
      throw FailedPrecondition(
          fmt::format("{} was called before mox::init: call mox::init(argc, argv) first in main, after the "
                      "define_flag calls.",
                      function));
    }
    use(&state->store);
  });
}

bool is_configured() {
  bool configured = false;
  with_config([&](const ConfigState* state) { configured = state->configured; });
  return configured;
}

void push_config() {
  const std::lock_guard lock(stack().mutex);
  current(&stack());  // keeps the outermost one below
  stack().states.push_back(std::make_unique<ConfigState>());
}

void pop_config() {
  const std::lock_guard lock(stack().mutex);
  MOX_ASSERT(stack().states.size() > 1, "a pushed configuration is popped");
  stack().states.pop_back();
}

}  // namespace mox::internal
