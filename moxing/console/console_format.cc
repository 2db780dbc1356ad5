// The text of log lines, the progress line and the summary.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>

#include "moxing/console/console.h"
#include "runtime/text/printable.h"

namespace mox {
namespace {

constexpr double kLargestPlain = 1e6;    // from here on a value is shown in scientific form
constexpr double kSmallestPlain = 1e-3;  // and below this

std::string format_bytes(int64_t bytes) {
  constexpr double kMebibyte = 1024.0 * 1024.0;
  const double mebibytes = bytes / kMebibyte;
  return mebibytes < 10 * 1024 ? fmt::format("{:.0f} MiB", mebibytes)
                               : fmt::format("{:.1f} GiB", mebibytes / 1024);
}

double per_second(int64_t count, double seconds) { return seconds > 0 ? count / seconds : 0; }

std::string format_share(std::string_view name, double seconds, double total) {
  const double percent = total > 0 ? 100 * seconds / total : 0;
  return fmt::format("{} {:.1f} s ({:.0f}%)", name, seconds, percent);
}

}  // namespace

std::string format_value(double value) {
  const double magnitude = std::abs(value);
  const bool plain = magnitude == 0 || (magnitude >= kSmallestPlain && magnitude < kLargestPlain);
  if (std::isnan(value)) return "nan";  // whatever its sign bit says
  return plain || !std::isfinite(value) ? fmt::format("{:.3f}", value) : fmt::format("{:.2e}", value);
}

std::string format_duration(double seconds) {
  constexpr double kLongest = 1e9;  // beyond thirty years it is no estimate
  if (!(seconds >= 0 && seconds < kLongest)) return "--:--";
  const int64_t whole = std::llround(seconds);
  const int64_t days = whole / 86400, hours = whole / 3600 % 24, minutes = whole / 60 % 60, rest = whole % 60;
  if (days > 0) return fmt::format("{}d {:02}:{:02}:{:02}", days, hours, minutes, rest);
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, rest);
  return fmt::format("{}:{:02}", minutes, rest);
}

std::string format_step_line(int64_t step, int64_t global_step, double samples_per_second,
                             const NamedValues& values) {
  std::string line =
      fmt::format("step: {}(global step: {})  sample/sec: {:.1f}", step, global_step, samples_per_second);
  for (const auto& [name, value] : values)
    line += fmt::format("  {}: {}", printable(name), format_value(value));
  return line;
}

std::string format_progress_line(const Progress& progress, int columns) {
  std::string line;
  if (progress.max_global_step > 0) {
    // Rounded down: 100% means that the last step is done.
    const double share = static_cast<double>(progress.global_step) / progress.max_global_step;
    line = fmt::format("{:3.0f}%  step {}/{}", std::floor(100 * std::clamp(share, 0.0, 1.0)),
                       progress.global_step, progress.max_global_step);
  } else {
    line = fmt::format("step {}", progress.global_step);
  }
  line += fmt::format("  {:.1f} sample/sec", progress.samples_per_second);
  if (progress.max_global_step > 0 && progress.steps_per_second > 0) {
    const double remaining = std::max<int64_t>(0, progress.max_global_step - progress.global_step);
    line += "  ETA " + format_duration(remaining / progress.steps_per_second);
  }
  if (progress.loss) line += "  loss " + format_value(*progress.loss);
  line.resize(std::min(line.size(), static_cast<size_t>(std::max(columns, 0))));
  return line;
}

std::string format_summary(const RunSummary& summary) {
  std::string text =
      fmt::format("Finished at global step {}: {} step{} in {}\n", summary.global_step, summary.steps,
                  summary.steps == 1 ? "" : "s", format_duration(summary.seconds));
  const std::string throughput =
      fmt::format("{:.1f} sample/sec, {:.1f} step/sec", per_second(summary.samples, summary.seconds),
                  per_second(summary.steps, summary.seconds));
  const double other = std::max(0.0, summary.seconds - summary.data_seconds - summary.compute_seconds);
  const std::string time =
      fmt::format("{}, {}, {}", format_share("data", summary.data_seconds, summary.seconds),
                  format_share("compute", summary.compute_seconds, summary.seconds),
                  format_share("other", other, summary.seconds));
  size_t name_width = std::string_view("peak memory").size();
  size_t last_width = std::string_view("last").size();
  for (const auto* rows : {&summary.evaluations, &summary.batches})
    for (const MetricSummary& metric : *rows) {
      name_width = std::max(name_width, printable(metric.name).size());
      last_width = std::max(last_width, format_value(metric.last).size());
    }
  const auto add = [&](std::string_view name, std::string_view value) {
    text += fmt::format("  {:<{}}  {}\n", name, name_width, value);
  };
  add("throughput", throughput);
  add("time", time);
  if (summary.sending_seconds > 0) {
    const double hidden = std::max(0.0, summary.sending_seconds - summary.exposed_seconds);
    add("network", fmt::format("sending {:.1f} s, of which {}, {}", summary.sending_seconds,
                               format_share("hidden", hidden, summary.sending_seconds),
                               format_share("exposed", summary.exposed_seconds, summary.sending_seconds)));
  }
  add("peak memory", format_bytes(summary.peak_memory_bytes));
  const auto add_rows = [&](const std::vector<MetricSummary>& rows, bool with_best) {
    for (const MetricSummary& metric : rows) {
      const std::string last = format_value(metric.last);
      add(printable(metric.name), with_best && metric.best
                                      ? fmt::format("{:<{}}  {} at step {}", last, last_width,
                                                    format_value(*metric.best), metric.best_step)
                                      : last);
    }
  };
  const std::string header = fmt::format("{:<{}}  best", "last", last_width);
  const bool evaluated = !summary.evaluations.empty();
  if (evaluated) add("evaluation", header);
  add_rows(summary.evaluations, true);
  if (!summary.batches.empty()) evaluated ? add("last batch", "last") : add("batch", header);
  add_rows(summary.batches, !evaluated);
  return text;
}

int64_t peak_memory_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024;  // Linux counts in KiB
}

}  // namespace mox
