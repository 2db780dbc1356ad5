// While alive, what this process writes to stdout goes to stderr: so that a run's summary does not mix with
// JSON lines.
#pragma once

#include <unistd.h>

#include <cstdio>

namespace bench {

class OutputToError {
 public:
  OutputToError() : output_(redirect(::dup(STDOUT_FILENO))) {}
  ~OutputToError() {
    std::fflush(stdout);
    ::dup2(output_, STDOUT_FILENO);
    ::close(output_);
  }
  OutputToError(const OutputToError&) = delete;
  OutputToError& operator=(const OutputToError&) = delete;

 private:
  static int redirect(int output) {
    std::fflush(stdout);
    ::dup2(STDERR_FILENO, STDOUT_FILENO);
    return output;
  }
  int output_;
};

}  // namespace bench
