// What a run shows to a person: log lines, a live progress line, a closing summary.
//
// The format_ functions are pure; Console writes what they make. Log lines and the summary go to stdout, the
// progress line to stderr.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/log.h"

namespace mox {

// Values in the order in which they are shown.
using NamedValues = std::vector<std::pair<std::string, double>>;

// "step: 10(global step: 10)  sample/sec: 42.2  loss: 3.977  accuracy: 0.188"
// `step` counts the steps of this run, `global_step` those of earlier starts too.
std::string format_step_line(int64_t step, int64_t global_step, double samples_per_second,
                             const NamedValues& values);

struct Progress {
  int64_t global_step = 0;
  int64_t max_global_step = 0;  // where the run ends; 0: unknown (no percentage, no ETA)
  double steps_per_second = 0;  // 0: unknown (no ETA)
  double samples_per_second = 0;
  std::optional<double> loss{};
};

// " 42%  step 420/1000  8400.1 sample/sec  ETA 0:07  loss 0.512", cut to `columns`.
std::string format_progress_line(const Progress& progress, int columns);

struct MetricSummary {
  std::string name;
  double last = 0;
  std::optional<double> best{};  // empty: it has none, or which way it gets better is not known
  int64_t best_step = 0;         // the global step of the best value
};

struct RunSummary {
  int64_t steps = 0;        // of this run
  int64_t global_step = 0;  // at its end
  int64_t samples = 0;      // that this run has trained (or evaluated) on
  double seconds = 0;       // from the first step to the end
  double data_seconds = 0;  // of these, waiting for data
  // of these, in the plan and the optimizer; the rest is hooks, logs and checkpoints
  double compute_seconds = 0;
  double sending_seconds = 0;  // of these, with gradients on their way to other ranks; 0 if there are none
  // of sending_seconds, with nothing else to do: the rest is hidden behind the computation
  double exposed_seconds = 0;
  int64_t peak_memory_bytes = 0;
  std::vector<MetricSummary> evaluations{};  // of the evaluations during and after the training, if any
  std::vector<MetricSummary> batches{};      // of the training batches
};

// A table in plain text, several lines, each with its line end:
//   Finished at global step 1000: 1000 steps in 0:23
//     throughput   4312.5 sample/sec, 43.1 step/sec
//     time         data 1.2 s (5%), compute 20.1 s (87%), other 1.8 s (8%)
//     network      sending 6.0 s, of which hidden 5.4 s (90%), exposed 0.6 s (10%)
//     peak memory  312 MiB
//     evaluation   last   best
//     loss         0.512  0.498 at step 900
//     last batch   last
//     loss         0.431
// Of a run without evaluations the last rows are headed "batch", and show the best of all batches too.
std::string format_summary(const RunSummary& summary);

// Seconds as "0:07", "12:34", "1:02:03", "2d 03:04:05"; "--:--" for a negative or non-finite number.
std::string format_duration(double seconds);

// Three decimals, or two digits after the point in scientific form where three decimals would say too little
// ("1.25e-05") or too much ("3.12e+07").
std::string format_value(double value);

// The largest resident set of this process so far, in bytes.
int64_t peak_memory_bytes();

// Whether text may be coloured on this descriptor: it is a terminal, TERM is not "dumb" and NO_COLOR
// is not set.
bool may_use_color(int descriptor);

// Writes lines to `output`, and while a run trains keeps one live line on `status` if that is a terminal (and
// TERM is not "dumb"). Lines of print and of the log (log_info and others) appear above the live line and
// never inside of it. A failure to write is logged once and remembered, no more: a terminal that has gone
// away does not end a run. Threads: all functions may be called from any thread. At most one Console may
// exist at a time.
class Console : private LogLineObserver {
 public:
  enum class Style { kPlain, kStrong };  // kStrong: bold, where colour may be used

  // Descriptors, not owned. With `terminals` false they are never taken for terminals: mpirun gives a program
  // one although what is printed may well go into a file.
  explicit Console(int output = 1, int status = 2, bool terminals = true);
  ~Console() override;  // removes the live line
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  // Prints one line or several, with a line end added if there is none.
  void print(std::string_view text, Style style = Style::kPlain);

  // Shows this state on the live line, at most ten times a second; costs next to nothing without a terminal.
  void show_progress(const Progress& progress);
  void remove_progress();

  // The errno of the first failure to write to `output`; 0 if all that was printed has been written.
  int output_error() const;

 private:
  void before_log_line() override;
  void after_log_line() override;
  void erase();
  void draw();

  int output_;
  int status_;
  bool live_;   // whether `status` takes a live line
  bool color_;  // whether `output` takes colour
  mutable std::mutex mutex_;
  std::optional<Progress> progress_{};  // what the live line shows; guarded by mutex_, as all below
  std::chrono::steady_clock::time_point last_drawn_{};
  int output_error_ = 0;
};

}  // namespace mox
