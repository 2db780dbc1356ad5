#include "runtime/base/log.h"

#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdlib>
#include <memory>
#include <mutex>
#include <utility>

#include "runtime/text/printable.h"

namespace mox {
namespace {

// stderr in colour, with an observer around every line.
class ObservedSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  ObservedSink() : stderr_(color_mode()) {}

  void set_observer(LogLineObserver* observer) {
    const std::lock_guard lock(mutex_);
    observer_ = observer;
  }

 private:
  static spdlog::color_mode color_mode() {
    const char* no_color = std::getenv("NO_COLOR");
    return no_color && *no_color ? spdlog::color_mode::never : spdlog::color_mode::automatic;
  }

  void sink_it_(const spdlog::details::log_msg& message) override {
    struct Around {
      explicit Around(LogLineObserver* observer) : observer(observer) {
        if (observer) observer->before_log_line();
      }
      ~Around() {
        if (observer) observer->after_log_line();
      }
      LogLineObserver* observer;
    };
    const Around around(observer_);
    stderr_.log(message);
    if (observer_) stderr_.flush();
  }
  void flush_() override { stderr_.flush(); }
  void set_pattern_(const std::string& pattern) override { stderr_.set_pattern(pattern); }
  void set_formatter_(std::unique_ptr<spdlog::formatter> formatter) override {
    stderr_.set_formatter(std::move(formatter));
  }

  spdlog::sinks::stderr_color_sink_st stderr_;
  LogLineObserver* observer_ = nullptr;
};

const std::shared_ptr<ObservedSink>& sink() {
  static const std::shared_ptr<ObservedSink> instance = std::make_shared<ObservedSink>();
  return instance;
}

spdlog::logger& logger() {
  static spdlog::logger instance = [] {
    spdlog::logger made("moxing", sink());
    made.set_pattern("%H:%M:%S.%e %^%l%$ %v");
    made.flush_on(spdlog::level::info);
    return made;
  }();
  return instance;
}

}  // namespace

void set_log_level(LogLevel level) {
  constexpr spdlog::level::level_enum kLevels[] = {
      spdlog::level::debug, spdlog::level::info, spdlog::level::warn, spdlog::level::err, spdlog::level::off};
  logger().set_level(kLevels[static_cast<int>(level)]);
}

void log_debug(std::string_view message) { logger().debug("{}", printable_message(message)); }
void log_info(std::string_view message) { logger().info("{}", printable_message(message)); }
void log_warning(std::string_view message) { logger().warn("{}", printable_message(message)); }
void log_error(std::string_view message) { logger().error("{}", printable_message(message)); }

void set_log_line_observer(LogLineObserver* observer) { sink()->set_observer(observer); }

}  // namespace mox
