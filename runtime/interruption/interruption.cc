#include "runtime/interruption/interruption.h"

#include <utility>

namespace mox::internal {
namespace {

thread_local const std::atomic<int>* wish_of_thread = nullptr;

}  // namespace

Interruptible::Interruptible(const std::atomic<int>& wish) : outer_(std::exchange(wish_of_thread, &wish)) {}

Interruptible::~Interruptible() { wish_of_thread = outer_; }

void throw_if_interrupted() {
  if (wish_of_thread && wish_of_thread->load(std::memory_order_relaxed) != 0) throw Interrupted();
}

}  // namespace mox::internal
