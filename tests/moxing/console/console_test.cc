// The text of console lines, and what a terminal (a pseudo-terminal here) and a pipe get to see.
#include "moxing/console/console.h"

#include <fcntl.h>
#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <sstream>
#include <thread>

#include "runtime/base/log.h"

namespace mox {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(ConsoleFormat, StepLine) {
  EXPECT_EQ(format_step_line(10, 10, 42.2, {{"loss", 3.977}, {"accuracy", 0.188}}),
            "step: 10(global step: 10)  sample/sec: 42.2  loss: 3.977  accuracy: 0.188");
  EXPECT_THAT(format_step_line(1, 1, 1, {{"a\nb\x1b", -std::nan("")}}),
              testing::EndsWith("  a\\nb\\x1b: nan"));
  EXPECT_THAT(format_summary({.batches = {{"a\nb", 1}}}), testing::HasSubstr("\n  a\\nb  "));
  EXPECT_EQ(format_step_line(5, 1005, 123456.78, {}), "step: 5(global step: 1005)  sample/sec: 123456.8");
}

TEST(ConsoleFormat, ValuesKeepTheirMeaningAtAnySize) {
  EXPECT_EQ(format_value(0), "0.000");
  EXPECT_EQ(format_value(-1.5), "-1.500");
  EXPECT_EQ(format_value(0.001), "0.001");
  EXPECT_EQ(format_value(0.0000125), "1.25e-05");
  EXPECT_EQ(format_value(999999), "999999.000");
  EXPECT_EQ(format_value(31200000), "3.12e+07");
  EXPECT_EQ(format_value(std::nan("")), "nan");
  EXPECT_EQ(format_value(-std::nan("")), "nan");
  EXPECT_EQ(format_value(-std::numeric_limits<double>::infinity()), "-inf");
}

TEST(ConsoleFormat, Durations) {
  EXPECT_EQ(format_duration(0), "0:00");
  EXPECT_EQ(format_duration(7.4), "0:07");
  EXPECT_EQ(format_duration(59.6), "1:00");
  EXPECT_EQ(format_duration(754), "12:34");
  EXPECT_EQ(format_duration(3723), "1:02:03");
  EXPECT_EQ(format_duration(2 * 86400 + 3 * 3600 + 4 * 60 + 5), "2d 03:04:05");
  EXPECT_EQ(format_duration(-1), "--:--");
  EXPECT_EQ(format_duration(std::numeric_limits<double>::infinity()), "--:--");
  EXPECT_EQ(format_duration(std::nan("")), "--:--");
}

TEST(ConsoleFormat, ProgressLine) {
  const Progress progress{.global_step = 420,
                          .max_global_step = 1000,
                          .steps_per_second = 84,
                          .samples_per_second = 8400.1,
                          .loss = 0.512};
  EXPECT_EQ(format_progress_line(progress, 80),
            " 42%  step 420/1000  8400.1 sample/sec  ETA 0:07  loss 0.512");
  EXPECT_EQ(format_progress_line(progress, 19), " 42%  step 420/1000");
  EXPECT_EQ(format_progress_line(progress, 0), "");
  EXPECT_EQ(format_progress_line({.global_step = 420, .samples_per_second = 1}, 80),
            "step 420  1.0 sample/sec");
  EXPECT_THAT(format_progress_line({.global_step = 9999, .max_global_step = 10000}, 80),
              StartsWith(" 99%  "));
  EXPECT_THAT(format_progress_line({.global_step = 12, .max_global_step = 10, .steps_per_second = 1}, 80),
              EndsWith("ETA 0:00"));
}

TEST(ConsoleFormat, Summary) {
  EXPECT_EQ(
      format_summary(
          {.steps = 1000,
           .global_step = 1500,
           .samples = 100000,
           .seconds = 25,
           .data_seconds = 1.25,
           .compute_seconds = 20,
           .sending_seconds = 8,
           .exposed_seconds = 0.8,
           .peak_memory_bytes = 312LL << 20,
           .batches = {{"loss", 0.512, 0.498, 900}, {"mean_accuracy", 0.811, 0.815, 950}, {"weather", 0.5}}}),
      "Finished at global step 1500: 1000 steps in 0:25\n"
      "  throughput     4000.0 sample/sec, 40.0 step/sec\n"
      "  time           data 1.2 s (5%), compute 20.0 s (80%), other 3.8 s (15%)\n"
      "  network        sending 8.0 s, of which hidden 7.2 s (90%), exposed 0.8 s (10%)\n"
      "  peak memory    312 MiB\n"
      "  batch          last   best\n"
      "  loss           0.512  0.498 at step 900\n"
      "  mean_accuracy  0.811  0.815 at step 950\n"
      "  weather        0.500\n");
  EXPECT_THAT(
      format_summary({.evaluations = {{"auc", 0.811, 0.815, 950}}, .batches = {{"loss", 0.512, 0.498, 9}}}),
      EndsWith("  evaluation   last   best\n"
               "  auc          0.811  0.815 at step 950\n"
               "  last batch   last\n"
               "  loss         0.512\n"));
  EXPECT_EQ(format_summary({.steps = 1, .global_step = 1, .peak_memory_bytes = 20LL << 30}),
            "Finished at global step 1: 1 step in 0:00\n"
            "  throughput   0.0 sample/sec, 0.0 step/sec\n"
            "  time         data 0.0 s (0%), compute 0.0 s (0%), other 0.0 s (0%)\n"
            "  peak memory  20.0 GiB\n");
}

TEST(ConsoleFormat, PeakMemoryCoversWhatWasTouched) {
  std::vector<char> touched(64 << 20, 1);
  volatile char* const kept = touched.data();  // or the compiler leaves out what nobody reads
  for (size_t i = 0; i < touched.size(); i += 4096) kept[i] = 2;
  EXPECT_GE(peak_memory_bytes(), static_cast<int64_t>(touched.size()));
}

// What `body` writes to its standard streams, run in a child process that has a terminal of 60 columns
// (or a pipe).
std::string output_of(bool terminal, const std::function<void()>& body) {
  int reading = -1, writing = -1;
  if (terminal) {
    winsize size{.ws_row = 24, .ws_col = 60, .ws_xpixel = 0, .ws_ypixel = 0};
    EXPECT_EQ(::openpty(&reading, &writing, nullptr, nullptr, &size), 0);
  } else {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    reading = ends[0];
    writing = ends[1];
  }
  std::fflush(stdout);  // not a second time by the child
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(writing, STDOUT_FILENO);
    ::dup2(writing, STDERR_FILENO);
    ::setenv("TERM", "xterm", 1);
    ::unsetenv("NO_COLOR");
    set_log_level(LogLevel::kInfo);  // whatever tests of this process have set before
    body();
    ::_exit(0);
  }
  ::close(writing);
  std::string text;
  char buffer[4096];
  for (ssize_t got; (got = ::read(reading, buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<size_t>(got));
  ::close(reading);
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  return text;
}

// The lines that a terminal shows after `text`, for the control sequences that Console uses.
std::vector<std::string> screen(const std::string& text) {
  std::vector<std::string> lines(1);
  size_t column = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.compare(i, 3, "\x1b[K") == 0) {
      lines.back().resize(column);
      i += 2;
    } else if (text[i] == '\r') {
      column = 0;
    } else if (text[i] == '\n') {
      lines.emplace_back();
      column = 0;
    } else {
      lines.back().resize(std::max(lines.back().size(), column + 1));
      lines.back()[column++] = text[i];
    }
  }
  return lines;
}

const Progress kProgress{
    .global_step = 5, .max_global_step = 10, .steps_per_second = 1, .samples_per_second = 32};
const char kProgressLine[] = " 50%  step 5/10  32.0 sample/sec  ETA 0:05";

TEST(Console, KeepsTheLiveLineBelowTheLines) {
  const std::string text = output_of(true, [] {
    Console console;
    console.show_progress(kProgress);
    console.print("first");
    console.print("second\n");
    ::_exit(0);  // leaves the live line where it is
  });
  EXPECT_THAT(screen(text), ElementsAre("first", "second", kProgressLine));
}

TEST(Console, LogLinesDoNotMixWithTheLiveLine) {
  const std::string text = output_of(true, [] {
    Console console;
    console.show_progress(kProgress);
    log_warning("from the log");
  });
  const std::vector<std::string> lines = screen(text);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_THAT(lines[0], HasSubstr("from the log"));
  EXPECT_THAT(lines[0], Not(HasSubstr("sample/sec")));
  EXPECT_EQ(lines[1], "");  // the destructor has removed the live line
  EXPECT_THAT(text, HasSubstr(kProgressLine));
}

TEST(Console, LinesOfManyThreadsStayWhole) {
  const std::string text = output_of(true, [] {
    Console console;
    std::vector<std::thread> threads;
    threads.reserve(4);
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&console, t] {
        for (int i = 0; i < 50; ++i) {
          console.show_progress(kProgress);
          if (t % 2 == 0) console.print("printed line");
          if (t % 2 == 1) log_info("logged line");
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  std::vector<std::string> lines = screen(text);
  EXPECT_EQ(lines.back(), "");
  lines.pop_back();
  EXPECT_EQ(lines.size(), 200u);
  for (const std::string& line : lines)
    EXPECT_THAT(line, AnyOf(Eq("printed line"), EndsWith(" logged line")));
}

TEST(Console, TheLiveLineIsCutToTheTerminal) {
  const std::string text = output_of(true, [] {
    Console console;
    Progress progress = kProgress;
    progress.loss = 123456.789;
    progress.global_step = 1000000;
    progress.max_global_step = 100000000;
    console.show_progress(progress);
    ::_exit(0);
  });
  EXPECT_EQ(screen(text).back().size(), 59u);
}

TEST(Console, APipeGetsPlainLinesOnly) {
  const std::string text = output_of(false, [] {
    Console console;
    console.show_progress(kProgress);
    console.print("first", Console::Style::kStrong);
    console.show_progress(kProgress);
    console.remove_progress();
  });
  EXPECT_EQ(text, "first\n");
}

TEST(Console, ColourIsForTerminalsWithoutNoColor) {
  const auto strong = [] { Console().print("done", Console::Style::kStrong); };
  EXPECT_EQ(output_of(true, strong), "\x1b[1mdone\x1b[0m\r\n");
  EXPECT_EQ(output_of(true,
                      [&] {
                        ::setenv("NO_COLOR", "1", 1);
                        strong();
                      }),
            "done\r\n");
  EXPECT_EQ(output_of(true,
                      [&] {
                        ::setenv("TERM", "dumb", 1);
                        Console console;
                        console.show_progress(kProgress);
                        console.print("done", Console::Style::kStrong);
                      }),
            "done\r\n");
}

TEST(Console, ATerminalThatHasGoneAwayEndsNothing) {
  int controlling = -1, terminal = -1;
  ASSERT_EQ(::openpty(&controlling, &terminal, nullptr, nullptr, nullptr), 0);
  {
    Console console(terminal, terminal);
    ::close(controlling);
    console.show_progress(kProgress);
    console.print("nobody reads this");
  }
  ::close(terminal);
}

}  // namespace
}  // namespace mox
