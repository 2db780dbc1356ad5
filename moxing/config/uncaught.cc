#include "moxing/config/uncaught.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <exception>

#include "runtime/job/job.h"
#include "runtime/text/printable.h"

namespace mox::internal {
namespace {

// The locks of whoever threw are still held.
[[noreturn]] void report_and_exit() {
  if (const std::exception_ptr thrown = std::current_exception()) {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::exception& error) {
      std::fflush(stdout);
      const int status = exit_status_of(error);
      if (job().size() > 1) fail_job(error.what(), status);
      std::fputs(fmt::format("error: {}\n", printable_message(error.what())).c_str(), stderr);
      std::_Exit(status);
    } catch (...) {
    }
  }
  std::abort();
}

}  // namespace

void report_uncaught_exceptions() { std::set_terminate(report_and_exit); }

}  // namespace mox::internal
