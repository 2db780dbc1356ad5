#include "moxing/console/stop_signal.h"

#include <signal.h>

#include <atomic>

namespace mox::internal {
namespace {

struct Watched {
  int signal;
  std::string_view name;
  bool is_repeated;
  struct sigaction previous {};
};
Watched watched[] = {{SIGINT, "SIGINT", false},
                     {SIGTERM, "SIGTERM", false},
                     {SIGHUP, "SIGHUP", true},
                     {SIGUSR1, "SIGUSR1", true}};

// A signal handler reaches nothing but globals.
std::atomic<int> received_signal{0};
static_assert(std::atomic<int>::is_always_lock_free);

extern "C" void remember_signal(int signal) { received_signal.store(signal, std::memory_order_relaxed); }
// Not SIG_IGN, which nohup may have set: a run that follows hears the signal again, and programs that this
// process starts do not inherit it.
extern "C" void do_nothing(int) {}

}  // namespace

StopSignal::StopSignal(bool others_go_on) : others_go_on_(others_go_on) {
  received_signal = 0;
  struct sigaction action {};
  action.sa_handler = remember_signal;
  sigemptyset(&action.sa_mask);
  for (Watched& each : watched) {
    // Else the second one has its usual effect.
    action.sa_flags = each.is_repeated ? SA_RESTART : static_cast<int>(SA_RESETHAND | SA_RESTART);
    sigaction(each.signal, &action, &each.previous);
    if (each.signal == SIGHUP && each.previous.sa_handler == SIG_IGN)
      sigaction(each.signal, &each.previous, nullptr);
  }
}

StopSignal::~StopSignal() {
  for (Watched& each : watched) {
    if (others_go_on_ && each.is_repeated && each.previous.sa_handler == SIG_DFL) {
      each.previous.sa_handler = do_nothing;
      each.previous.sa_flags = SA_RESTART;
    }
    sigaction(each.signal, &each.previous, nullptr);
  }
}

void StopSignal::let_interrupts_end() const {
  for (const Watched& each : watched)
    if (each.signal == SIGINT) sigaction(SIGINT, &each.previous, nullptr);
}

const std::atomic<int>& StopSignal::wish() const { return received_signal; }

int StopSignal::received() const { return received_signal.load(std::memory_order_relaxed); }

std::string_view StopSignal::name() const {
  const int signal = received();
  for (const Watched& each : watched)
    if (each.signal == signal) return each.name;
  return "";
}

}  // namespace mox::internal
