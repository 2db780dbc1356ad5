#include "runtime/base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

namespace mox {
namespace {

spdlog::logger& logger() {
  static spdlog::logger instance = [] {
    spdlog::logger made("moxing", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    made.set_pattern("%H:%M:%S.%e %^%l%$ %v");
    made.flush_on(spdlog::level::info);
    return made;
  }();
  return instance;
}

}  // namespace

void set_log_level(LogLevel level) {
  constexpr spdlog::level::level_enum levels[] = {
      spdlog::level::debug, spdlog::level::info, spdlog::level::warn, spdlog::level::err, spdlog::level::off};
  logger().set_level(levels[static_cast<int>(level)]);
}

void log_debug(std::string_view message) { logger().debug("{}", message); }
void log_info(std::string_view message) { logger().info("{}", message); }
void log_warning(std::string_view message) { logger().warn("{}", message); }
void log_error(std::string_view message) { logger().error("{}", message); }

}  // namespace mox
