// Log lines on stderr: "[time] level message". Results that a person or a script reads go to stdout instead.
// Colour only on a terminal. Safe from any thread.
#pragma once

#include <string_view>

namespace mox {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };

void set_log_level(LogLevel level);  // default kInfo

void log_debug(std::string_view message);
void log_info(std::string_view message);
void log_warning(std::string_view message);
void log_error(std::string_view message);

}  // namespace mox
