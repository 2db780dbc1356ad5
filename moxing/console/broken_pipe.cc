#include "moxing/console/broken_pipe.h"

#include <signal.h>

namespace mox::internal {

SurviveBrokenPipe::SurviveBrokenPipe() {
  struct sigaction now {};
  if (sigaction(SIGPIPE, nullptr, &now) != 0 || (now.sa_flags & SA_SIGINFO) != 0 || now.sa_handler != SIG_DFL)
    return;
  now.sa_handler = SIG_IGN;
  changed_ = sigaction(SIGPIPE, &now, nullptr) == 0;
}

SurviveBrokenPipe::~SurviveBrokenPipe() {
  if (!changed_) return;
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  sigemptyset(&usual.sa_mask);
  sigaction(SIGPIPE, &usual, nullptr);
}

}  // namespace mox::internal
