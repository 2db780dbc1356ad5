// mox file cp, mv and sync: with progress, rates and the time that is left.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "moxing/cli/internal/file_options.h"
#include "moxing/console/console.h"
#include "moxing/console/stop_signal.h"
#include "moxing/file/copy.h"
#include "moxing/file/file.h"
#include "moxing/file/store_client.h"
#include "runtime/base/error.h"
#include "runtime/base/seconds.h"

namespace mox::cli {
namespace {

using Clock = std::chrono::steady_clock;

std::string bytes_text(double bytes) {
  for (const char* unit : {"B", "KiB", "MiB", "GiB"}) {
    if (bytes < 1024) return fmt::format("{:.{}f} {}", bytes, unit[0] == 'B' ? 0 : 1, unit);
    bytes /= 1024;
  }
  return fmt::format("{:.1f} TiB", bytes);
}

// The line that a copy shows on a terminal, and nowhere else.
class ProgressLine {
 public:
  explicit ProgressLine(bool wanted) : shows_(wanted && ::isatty(STDERR_FILENO)) {}
  ~ProgressLine() {
    if (shows_) std::fputs("\r\x1b[K", stderr);
  }
  void operator()(const file::CopyProgress& now) const {
    if (!shows_) return;
    const double seconds = seconds_since(begin_), rate = now.bytes / std::max(seconds, 1e-3);
    const double share = now.bytes_total ? static_cast<double>(now.bytes) / now.bytes_total : 1;
    constexpr int kWidth = 24;
    const int filled = static_cast<int>(share * kWidth);
    std::fputs(fmt::format("\r\x1b[K{:3.0f}% [{:<{}}] {}/{} files  {} of {}  {}/s  ETA {}", 100 * share,
                           std::string(filled, '#'), kWidth, now.files, now.files_total,
                           bytes_text(now.bytes), bytes_text(now.bytes_total), bytes_text(rate),
                           format_duration(rate > 0 ? (now.bytes_total - now.bytes) / rate : -1))
                   .c_str(),
               stderr);
    std::fflush(stderr);
  }

 private:
  const bool shows_;
  const Clock::time_point begin_ = Clock::now();
};

// The first SIGINT or SIGTERM ends a copy in order: nothing half is left behind.
class StopOnSignal {
 public:
  StopOnSignal()
      : watcher_([this](const std::stop_token& done) {
          std::mutex mutex;
          std::unique_lock lock(mutex);
          std::condition_variable_any changed;  // by the end of the copy, which nothing holds up
          while (!done.stop_requested()) {
            if (signal_.received()) source_.request_stop();
            changed.wait_for(lock, done, std::chrono::milliseconds(50), [] { return false; });
          }
        }) {}
  std::stop_token token() const { return source_.get_token(); }

 private:
  internal::StopSignal signal_;
  std::stop_source source_;
  std::jthread watcher_;  // last: it uses the others
};

struct Wanted {
  std::string from, to;
  int threads = 16;
  bool recursive = false, size_only = false, json = false, quiet = false, removes_others = false;
};

void add_common(CLI::App& command, Wanted& wanted) {
  command.add_option("FROM", wanted.from, "A file or a directory")->required();
  command.add_option("TO", wanted.to, "Its new place; a directory's content comes below it")->required();
  command.add_option("--threads", wanted.threads, "Files and parts under way at a time")
      ->check(CLI::Range(1, 1024));
  command.add_flag("--json", wanted.json, "The end as one JSON object");
  command.add_flag("-q,--quiet", wanted.quiet, "No progress, and no line at the end");
}

void print_report(const Wanted& wanted, const file::CopyReport& report, double seconds, int64_t removed) {
  if (wanted.json) {
    const nlohmann::ordered_json object{{"files", report.files},
                                        {"bytes", report.bytes},
                                        {"same_files", report.same_files},
                                        {"sent_bytes", report.sent_bytes},
                                        {"continued_bytes", report.continued_bytes},
                                        {"directories", report.directories},
                                        {"unchecked", report.unchecked},
                                        {"removed", removed},
                                        {"seconds", seconds}};
    fmt::print("{}\n", object.dump());
  } else if (!wanted.quiet) {
    fmt::print("{} files, {} in {} ({}/s)", report.files, bytes_text(report.bytes), format_duration(seconds),
               bytes_text(report.sent_bytes / std::max(seconds, 1e-3)));
    if (report.same_files) fmt::print("; {} were there", report.same_files);
    if (report.continued_bytes) fmt::print("; {} had arrived before", bytes_text(report.continued_bytes));
    if (report.unchecked)
      fmt::print("; {} checked by size alone, as the store gives no checksum", report.unchecked);
    if (removed) fmt::print("; {} removed", removed);
    fmt::print("\n");
  }
}

// As many commands mean by it what they print.
void require_place(const Wanted& wanted) {
  if (wanted.to == "-")
    throw InvalidArgument(
        "'-' is no place for files: `mox file cat` prints one, and './-' is a name of this directory");
}

// Where one file goes: "DIR/" and a directory that exists take it under its own name. Of a file and a
// directory of one name, which a store may have, the file is replaced.
std::string place_of_file(const Wanted& wanted) {
  const bool takes_files = file::exists(wanted.to) && file::stat(wanted.to).is_directory;
  if (!wanted.to.ends_with('/') && !takes_files) return wanted.to;
  return wanted.to + (wanted.to.ends_with('/') ? "" : "/") + wanted.from.substr(wanted.from.rfind('/') + 1);
}

void run_move(const Wanted& wanted) {
  require_place(wanted);
  const Clock::time_point begin = Clock::now();
  // Until here a signal ends the command at once: there is nothing to take back.
  file::stat(wanted.from);  // says what is not there
  const bool directory = file::is_directory(wanted.from);
  const std::string place = directory ? wanted.to : place_of_file(wanted);
  const StopOnSignal stop;
  file::CopyReport report;
  {
    const ProgressLine line(!wanted.quiet && !wanted.json);
    file::CopyOptions options{.threads = wanted.threads,
                              .on_progress = [&](const file::CopyProgress& now) { line(now); }};
    options.stop = stop.token();
    report = file::rename(wanted.from, place, options);
  }
  print_report(wanted, report, seconds_since(begin), 0);
}

void run_copy(const Wanted& wanted, bool synchronises) {
  require_place(wanted);
  const Clock::time_point begin = Clock::now();
  // A store may have a file and a directory of one name: one is copied, the other one with all below it.
  const bool takes_all = synchronises || wanted.recursive;
  const bool directory =
      file::stat(wanted.from).is_directory || (takes_all && file::is_directory(wanted.from));
  if (synchronises && !directory)
    throw InvalidArgument(fmt::format("sync: '{}' is no directory", wanted.from));
  if (directory && !synchronises && !wanted.recursive)
    throw InvalidArgument(
        fmt::format("cp: '{}' is a directory; -r copies it with all below it", wanted.from));
  const std::string place = directory ? wanted.to : place_of_file(wanted);
  const StopOnSignal stop;
  file::SyncReport report;
  {
    const ProgressLine line(!wanted.quiet && !wanted.json);
    file::CopyOptions options{.threads = wanted.threads,
                              .on_progress = [&](const file::CopyProgress& now) { line(now); }};
    if (wanted.size_only) options.verify = file::Verify::kSize;
    options.stop = stop.token();
    if (synchronises)
      report = file::sync(wanted.from, place, wanted.removes_others, options);
    else if (directory)
      report.copied = file::copy_parallel(wanted.from, place, options);
    else
      report.copied = file::copy(wanted.from, place, options);
  }
  print_report(wanted, report.copied, seconds_since(begin), report.removed);
}

// A name that is refused is a mistake of the command line, whose status says so.
template <typename Do>
void with_refusals(Do&& do_it) {
  try {
    do_it();
  } catch (const FailedPrecondition& error) {
    throw InvalidArgument(error.what());
  }
}

}  // namespace

void add_store_options(CLI::App& file) {
  auto options = std::make_shared<file::s3::StoreOptions>();
  auto style = std::make_shared<std::string>("auto");
  file.add_option("--endpoint", options->endpoint,
                  "Address of the object store, http[s]://HOST[:PORT]; else S3_ENDPOINT, else AWS");
  file.add_option("--region", options->region, "Its region; else S3_REGION, AWS_REGION, the profile's");
  file.add_option("--profile", options->profile, "Profile of ~/.aws; else AWS_PROFILE, \"default\"");
  file.add_option("--addressing", *style, "auto, virtual (BUCKET.HOST) or path (HOST/BUCKET)")
      ->check(CLI::IsMember({"auto", "virtual", "path"}));
  file.add_flag("--instance-metadata", options->instance_metadata,
                "Ask the cloud machine's service for credentials");
  file.parse_complete_callback([options, style] {
    using Addressing = file::s3::StoreOptions::Addressing;
    options->addressing = *style == "virtual" ? Addressing::kVirtual
                          : *style == "path"  ? Addressing::kPath
                                              : Addressing::kAuto;
    file::set_store_options(*options);
  });
}

void add_file_copies(CLI::App& file) {
  auto copied = std::make_shared<Wanted>();
  CLI::App* cp =
      file.add_subcommand("cp", "Copy a file, or with -r a directory; goes on where it was interrupted");
  add_common(*cp, *copied);
  cp->add_flag("-r,--recursive", copied->recursive, "A directory with all below it, empty directories too");
  cp->add_flag("--size-only", copied->size_only, "Compare sizes, not content");
  cp->callback([copied] { with_refusals([&] { run_copy(*copied, false); }); });

  auto synchronised = std::make_shared<Wanted>();
  CLI::App* sync = file.add_subcommand("sync", "Copy what differs of a directory");
  add_common(*sync, *synchronised);
  sync->add_flag("--size-only", synchronised->size_only, "Compare sizes, not content");
  sync->add_flag("--delete", synchronised->removes_others, "Then remove from TO what FROM does not have");
  sync->callback([synchronised] { with_refusals([&] { run_copy(*synchronised, true); }); });

  auto moved = std::make_shared<Wanted>();
  CLI::App* mv = file.add_subcommand(
      "mv", "Give a file or a directory another name or place; the source goes after the check");
  add_common(*mv, *moved);
  mv->callback([moved] { with_refusals([&] { run_move(*moved); }); });
}

}  // namespace mox::cli
