// A program as a process of its own: started, watched, signalled, and never waited for without an end.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace mox {

struct ProcessResult {
  int status = -1;  // exit status; -1 if a signal ended the process
  int signal = 0;   // that signal
  bool timed_out = false;
  std::string out, err;
  double seconds = 0;
};

class Process {
 public:
  // `command` is a program of build/bin, or a path with a slash, and its arguments. Where `output` is given,
  // stdout goes there and not into the result.
  explicit Process(const std::vector<std::string>& command, const std::string& output = "");
  ~Process();  // kills it if it still runs
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  bool running();
  void send(int signal) const;
  // Waits until `condition` holds; false if the process ended, or a minute passed, before.
  bool wait_until(const std::function<bool()>& condition);
  // Whether it has printed this by now, on stdout or stderr.
  bool said(const std::string& text) const;
  // The end of the process. One that runs longer is killed, and `timed_out` is set.
  ProcessResult wait(double timeout_seconds = 100);

 private:
  pid_t id_ = -1;
  bool reaped_ = false;
  int wait_status_ = 0;
  std::string out_path_, err_path_;
  double started_;
};

// Runs it to its end.
ProcessResult run_process(const std::vector<std::string>& command, const std::string& output = "");

double monotonic_seconds();

}  // namespace mox
