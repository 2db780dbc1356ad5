// Loaded before a test program: where an exception ends it, it says where that was thrown. All tests of a
// program share one process here, for minutes, and what goes wrong then may not do so again.
#include <execinfo.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>

namespace {

std::terminate_handler usual = nullptr;

[[noreturn]] void say_where() {
  void* frames[64];
  ::backtrace_symbols_fd(frames, ::backtrace(frames, 64), STDERR_FILENO);
  usual();
  std::abort();
}

struct SetHandler {
  SetHandler() { usual = std::set_terminate(say_where); }
} set_handler;

}  // namespace
