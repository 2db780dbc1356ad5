#include "moxing/console/console.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "runtime/text/printable.h"

namespace mox {
namespace {

constexpr std::chrono::milliseconds kBetweenDrawings{100};
constexpr std::string_view kEraseLine = "\r\x1b[K";
constexpr std::string_view kBold = "\x1b[1m";
constexpr std::string_view kReset = "\x1b[0m";

bool is_capable_terminal(int descriptor) {
  const char* terminal = std::getenv("TERM");
  return ::isatty(descriptor) && !(terminal && std::string_view(terminal) == "dumb");
}

int columns_of(int descriptor) {
  constexpr int kUsual = 80;
  winsize size{};
  return ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsual;
}

// 0, or errno.
int write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return written < 0 ? errno : EIO;
    text.remove_prefix(written);
  }
  return 0;
}

}  // namespace

bool may_use_color(int descriptor) {
  const char* no_color = std::getenv("NO_COLOR");
  return is_capable_terminal(descriptor) && !(no_color && *no_color);
}

Console::Console(int output, int status, bool terminals)
    : output_(output),
      status_(status),
      live_(terminals && is_capable_terminal(status)),
      color_(terminals && may_use_color(output)) {
  if (live_) set_log_line_observer(this);
}

Console::~Console() {
  // First, and without our lock: a log line under way takes that lock inside the log's.
  if (live_) set_log_line_observer(nullptr);
  remove_progress();
}

void Console::print(std::string_view text, Style style) {
  std::string lines = printable_lines(text.substr(0, text.ends_with('\n') ? text.size() - 1 : text.size()));
  if (style == Style::kStrong && color_) lines = std::string(kBold) + lines + std::string(kReset);
  lines += '\n';
  int first_error = 0;
  {
    const std::lock_guard lock(mutex_);
    if (output_ == STDOUT_FILENO) std::fflush(stdout);  // what the program has printed itself comes first
    erase();
    const int error = write_all(output_, lines);
    draw();
    if (output_error_ == 0) output_error_ = first_error = error;
  }
  // Without the lock, which a log line takes, too.
  if (first_error != 0)
    log_warning(
        fmt::format("standard output cannot be written ({}): what is printed there is lost from here on",
                    std::strerror(first_error)));
}

int Console::output_error() const {
  const std::lock_guard lock(mutex_);
  return output_error_;
}

void Console::show_progress(const Progress& progress) {
  if (!live_) return;
  const auto now = std::chrono::steady_clock::now();
  const std::lock_guard lock(mutex_);
  const bool draw_now = !progress_ || now - last_drawn_ >= kBetweenDrawings;
  progress_ = progress;
  if (!draw_now) return;
  last_drawn_ = now;
  draw();
}

void Console::remove_progress() {
  const std::lock_guard lock(mutex_);
  erase();
  progress_.reset();
}

// The lock is held from before a log line to after it, so that nothing is drawn in between.
void Console::before_log_line() {
  mutex_.lock();
  erase();
}

void Console::after_log_line() {
  draw();
  mutex_.unlock();
}

void Console::erase() {
  if (progress_) write_all(status_, kEraseLine);
}

void Console::draw() {
  if (!progress_) return;
  // The last column stays free: a full line would wrap, and a wrapped line cannot be erased.
  write_all(status_, std::string(kEraseLine) + format_progress_line(*progress_, columns_of(status_) - 1));
}

}  // namespace mox
