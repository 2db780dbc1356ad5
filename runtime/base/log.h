// Log lines on stderr: "[time] level message". Results that a person or a script reads go to stdout instead.
// Colour only on a terminal, and not if NO_COLOR is set (no-color.org). Safe from any thread.
#pragma once

#include <string_view>

namespace mox {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };

void set_log_level(LogLevel level);  // default kInfo

void log_debug(std::string_view message);
void log_info(std::string_view message);
void log_warning(std::string_view message);
void log_error(std::string_view message);

// What draws on the terminal of the log lines, and steps aside for each of them: a progress line.
class LogLineObserver {
 public:
  virtual ~LogLineObserver() = default;
  virtual void before_log_line() = 0;  // on the thread that logs, one line at a time; must not log or throw
  virtual void after_log_line() = 0;
};

// `observer` is told of every line until another one, or nullptr, takes its place; not owned. When this
// returns, no call of the previous one is under way.
void set_log_line_observer(LogLineObserver* observer);

}  // namespace mox
