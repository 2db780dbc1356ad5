#include "moxing/internal/stop_signal.h"

#include <signal.h>

#include <atomic>

namespace mox::internal {
namespace {

// A signal handler reaches nothing but globals.
std::atomic<int> received_signal{0};
static_assert(std::atomic<int>::is_always_lock_free);

struct sigaction previous_interrupt, previous_terminate, previous_user;

extern "C" void remember_signal(int signal) { received_signal.store(signal, std::memory_order_relaxed); }

}  // namespace

StopSignal::StopSignal() {
  received_signal = 0;
  struct sigaction action {};
  action.sa_handler = remember_signal;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);  // the second one has its usual effect
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &previous_interrupt);
  sigaction(SIGTERM, &action, &previous_terminate);
  sigaction(SIGUSR1, &action, &previous_user);
}

StopSignal::~StopSignal() {
  sigaction(SIGINT, &previous_interrupt, nullptr);
  sigaction(SIGTERM, &previous_terminate, nullptr);
  sigaction(SIGUSR1, &previous_user, nullptr);
}

int StopSignal::received() const { return received_signal.load(std::memory_order_relaxed); }

}  // namespace mox::internal
