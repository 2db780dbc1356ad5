#include "moxing/console/stop_signal.h"

#include <signal.h>

#include <atomic>

namespace mox::internal {
namespace {

struct Watched {
  int signal;
  std::string_view name;
  struct sigaction previous {};
};
Watched watched[] = {{SIGINT, "SIGINT"}, {SIGTERM, "SIGTERM"}, {SIGHUP, "SIGHUP"}, {SIGUSR1, "SIGUSR1"}};

// A signal handler reaches nothing but globals.
std::atomic<int> received_signal{0};
static_assert(std::atomic<int>::is_always_lock_free);

extern "C" void remember_signal(int signal) { received_signal.store(signal, std::memory_order_relaxed); }

}  // namespace

StopSignal::StopSignal() {
  received_signal = 0;
  struct sigaction action {};
  action.sa_handler = remember_signal;
  sigemptyset(&action.sa_mask);
  for (Watched& each : watched) {
    const bool is_repeated = each.signal == SIGHUP || each.signal == SIGUSR1;
    // Else the second one has its usual effect.
    action.sa_flags = is_repeated ? SA_RESTART : static_cast<int>(SA_RESETHAND | SA_RESTART);
    sigaction(each.signal, &action, &each.previous);
    if (each.signal == SIGHUP && each.previous.sa_handler == SIG_IGN)
      sigaction(each.signal, &each.previous, nullptr);
  }
}

StopSignal::~StopSignal() {
  for (const Watched& each : watched) sigaction(each.signal, &each.previous, nullptr);
}

int StopSignal::received() const { return received_signal.load(std::memory_order_relaxed); }

std::string_view StopSignal::name() const {
  const int signal = received();
  for (const Watched& each : watched)
    if (each.signal == signal) return each.name;
  return "";
}

}  // namespace mox::internal
