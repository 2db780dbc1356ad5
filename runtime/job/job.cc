#include "runtime/job/job.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <optional>
#include <set>

#include "runtime/base/conflict.h"
#include "runtime/base/error.h"
#include "runtime/base/local_name.h"
#include "runtime/base/log.h"
#include "runtime/base/resource_limits.h"
#include "runtime/base/seconds.h"
#include "runtime/comm/launcher.h"
#include "runtime/job/internal/core_share.h"
#include "runtime/job/internal/machine.h"
#include "runtime/job/internal/rank_connections.h"
#include "runtime/job/internal/rank_watch.h"

namespace mox::internal {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kAllConnectTime = std::chrono::seconds(60);

// What init makes, for the life of the process.
struct Job {
  std::unique_ptr<Communicator> ranks = std::make_unique<Communicator>();
  std::unique_ptr<RankWatch> watch;  // with several ranks
  std::atomic<const char*> doing{""};
  std::atomic<double> warn_seconds{30}, abort_seconds{600};
  std::atomic<const char*> abort_option{"stall_abort_s"};
  int ranks_of_kernel = 1;
  std::atomic<bool> has_stepped{false};
  // Of the thread that drives the communicator: stalls that were reported, and when the ranks that hold the
  // others up were last seen in kLocalWork or kCopying.
  std::set<std::string> warned;
  std::optional<Clock::time_point> seen_at_work;
};

Job& the_job() {
  static Job* const job = new Job;  // never destroyed: threads of the process may outlive main
  return *job;
}

// All threads that the process has by now, and with them those that they start: a thread that sends gradients
// on another rank's cores would take time from that rank.
void bind_process(const cpu_set_t& cores) {
  std::error_code error;
  for (std::filesystem::directory_iterator task("/proc/self/task", error), end; !error && task != end;
       task.increment(error))
    sched_setaffinity(std::atoi(task->path().filename().c_str()), sizeof cores, &cores);
  if (error) sched_setaffinity(0, sizeof cores, &cores);
}

// See share_of_cores. Returns how many ranks run on this kernel.
int take_share_of_cores(Communicator& ranks, const Machine& machine) {
  RankCores own{.kernel = machine.kernel, .machine = machine.id};
  if (!affinity_of_thread(std::as_writable_bytes(std::span(&own.allowed, 1)))) CPU_ZERO(&own.allowed);
  own.quota = control_group_limits().cores.value_or(0);
  std::vector<RankCores> cores;
  for (const std::string& bytes : ranks.allgather(own.to_bytes()))
    cores.push_back(RankCores::from_bytes(bytes));
  const cpu_set_t share = share_of_cores(cores, ranks.rank());
  if (CPU_COUNT(&share) > 0 && !CPU_EQUAL(&share, &own.allowed)) bind_process(share);
  return static_cast<int>(
      std::ranges::count_if(cores, [&](const RankCores& rank) { return rank.kernel == own.kernel; }));
}

// Who holds the others up, and what is known of it. `statuses[own]` says what this rank waits for.
std::string describe_stall(const RankWatch& watch, std::span<const RankStatus> statuses, int own,
                           double seconds) {
  const StallCause cause = find_stall_cause(statuses, own);
  std::vector<std::string> parts;
  if (cause.ranks.empty()) {
    for (const int rank : cause.circle) {
      const RankStatus& status = statuses[rank];
      parts.push_back(fmt::format("{} waits for rank {} in '{}' at global step {}", watch.name_of(rank),
                                  fmt::join(status.missing, ", "), status.waits_in, status.step));
    }
    return fmt::format(
        "the ranks wait for each other: {}; all must run the same steps and call the same functions, "
        "and have not gone on for {:.0f} s",
        fmt::join(parts, ", "), seconds);
  }
  for (const int rank : cause.ranks) parts.push_back(watch.name_of(rank));
  const RankStatus& waiter = statuses[cause.waiter];
  const RankStatus& first = statuses[cause.ranks.front()];
  const bool is_one = parts.size() == 1;
  std::string state = is_one ? "its process does not answer: stopped, swapping, or cut off?"
                             : "their processes do not answer: stopped, swapping, or cut off?";
  if (first.answers)
    state =
        fmt::format("{} and {} at global step {}", is_one ? "its process answers" : "their processes answer",
                    first.doing.empty() ? "does something else" : "is " + first.doing, first.step);
  return fmt::format("{} {} not sent {} part of '{}' at global step {} for {:.0f} s; {}",
                     fmt::join(parts, ", "), is_one ? "has" : "have", is_one ? "its" : "their",
                     waiter.waits_in, waiter.step, seconds, state);
}

// Whether all who hold the others up do what is waited for without a limit.
bool is_local_work(const StallCause& cause, std::span<const RankStatus> statuses) {
  return !cause.ranks.empty() && std::ranges::all_of(cause.ranks, [&](int rank) {
    const RankStatus& status = statuses[rank];
    return status.answers && (status.doing == kLocalWork || status.doing == kCopying);
  });
}

RankStatus own_status() {
  Job& self = the_job();
  RankStatus status{
      .answers = true, .step = self.watch->step(), .doing = self.doing.load(), .waits_in = "", .missing = {}};
  if (const auto wait = self.ranks->longest_wait()) {
    status.waits_in = wait->what;
    status.missing = wait->missing;
  }
  return status;
}

void report_stall(const std::string& what, std::span<const int> missing, double seconds) {
  Job& self = the_job();
  RankWatch& watch = *self.watch;
  std::vector<std::string> names;
  for (const int rank : missing) {
    names.push_back(watch.name_of(rank));
    if (watch.is_gone(rank))
      watch.end_job(fmt::format(
          "{} has come to the end of its program, but {} needs it for '{}' at global step {}; all "
          "ranks must run the same steps and call the same functions",
          names.back(), watch.name_of(self.ranks->rank()), what, watch.step()));
  }
  // What came before work that may take long, and during it, does not count.
  if (self.seen_at_work) seconds = std::min(seconds, seconds_since(*self.seen_at_work));
  if (seconds < std::min(self.warn_seconds.load(), self.abort_seconds.load())) return;
  const bool is_over = seconds >= self.abort_seconds;
  const std::string stall = fmt::format("{} {} {}", what, watch.step(), fmt::join(missing, " "));
  if (!is_over && !self.warned.insert(stall).second) return;

  const int own = self.ranks->rank();
  std::vector<RankStatus> statuses = watch.ask_all();
  statuses[own] = {.answers = true,
                   .step = watch.step(),
                   .doing = "",
                   .waits_in = what,
                   .missing = {missing.begin(), missing.end()}};
  const std::string text = describe_stall(watch, statuses, own, seconds);
  if (is_local_work(find_stall_cause(statuses, own), statuses)) {
    self.seen_at_work = Clock::now();
    if (self.warned.insert(kLocalWork).second && speaker(statuses, own) == own)
      log_warning(text + ". The job waits for it as long as it answers");
    return;
  }
  if (is_over)
    watch.end_job(text +
                  fmt::format(" ({}), so the job ends; started again, it goes on from its last checkpoint",
                              self.abort_option.load()));
  if (speaker(statuses, own) != own) return;
  log_warning(text + fmt::format(". The job ends after {:.0f} s ({})", self.abort_seconds.load(),
                                 self.abort_option.load()));
}

// At the end of the program. A process that ends in another way has its connections closed by the kernel,
// which the other ranks take for what it is.
void leave_job() {
  Job& self = the_job();
  if (!self.watch) return;
  std::fflush(nullptr);  // mpirun may kill the others once one has ended with a status of its own
  self.watch->leave();
  self.watch.reset();
  self.ranks.reset();  // MPI_Finalize
}

// Once a job.
void say_how_messages_travel(Communicator& ranks, const std::string& why_memory_is_not_read) {
  const bool is_concerned = ranks.local_size() > 1;
  const auto reasons = ranks.allgather(is_concerned ? why_memory_is_not_read : "");
  const auto first = std::ranges::find_if(reasons, [](const std::string& reason) { return !reason.empty(); });
  if (ranks.rank() != 0 || first == reasons.end()) return;
  log_info(
      fmt::format("the processes on host {} may not read each other's memory ({}: a container without "
                  "ptrace?), so messages between them are copied through shared memory",
                  ranks.host(static_cast<int>(first - reasons.begin())), *first));
}

}  // namespace

Communicator& job() { return *the_job().ranks; }

void join_job(LogLevel least_level) {
  Job& self = the_job();
  if (self.watch) return;
  const int size = launched_ranks();
  if (size == 1) return;
  const Machine machine = this_machine();
  auto transport = std::make_unique<MpiTransport>(size);
  const std::string why_memory_is_not_read = transport->why_memory_is_not_read();
  self.ranks = std::make_unique<Communicator>(std::move(transport), machine.name, machine.id);
  Communicator& ranks = *self.ranks;
  std::vector<std::string> names;
  for (int rank = 0; rank < ranks.size(); ++rank)
    names.push_back(fmt::format("rank {} (host {})", rank, ranks.host(rank)));
  const bool is_local = ranks.broadcast_text(machine.network) == machine.network;
  std::vector<RankConnection> connections;
  if (ranks.rank() == 0) {
    const RankListener listener = listen_for_ranks();
    ranks.broadcast_text(listener.invitation);
    connections = accept_ranks(listener, names, kAllConnectTime);
  } else {
    connections = {connect_to_rank_0(ranks.broadcast_text(""), ranks.rank(), is_local)};
  }
  self.watch = std::make_unique<RankWatch>(connections, ranks.rank(), std::move(names));
  self.watch->set_status(own_status);
  ranks.set_stall_listener(report_stall);
  self.ranks_of_kernel = take_share_of_cores(ranks, machine);
  say_how_messages_travel(ranks, why_memory_is_not_read);
  if (ranks.rank() != 0 && least_level < LogLevel::kWarning) set_log_level(LogLevel::kWarning);
  std::atexit(leave_job);
}

int ranks_of_kernel() { return the_job().ranks_of_kernel; }

void set_stall_limits(double warn_seconds, double abort_seconds, const char* option) {
  the_job().warn_seconds = warn_seconds;
  the_job().abort_seconds = abort_seconds;
  the_job().abort_option = option;
}

void set_job_step(int64_t step) {
  if (the_job().watch) the_job().watch->set_step(step);
}

JobActivity::JobActivity(const char* doing) : before_(the_job().doing.exchange(doing)) {}
JobActivity::~JobActivity() { the_job().doing = before_; }

int exit_status_of(const std::exception& error) {
  const bool is_refusal = dynamic_cast<const InvalidArgument*>(&error) ||
                          dynamic_cast<const ConfigError*>(&error) || dynamic_cast<const NotFound*>(&error) ||
                          dynamic_cast<const Conflict*>(&error) || dynamic_cast<const UnusablePlace*>(&error);
  return is_refusal && !the_job().has_stepped ? kValueRefused : kJobFailed;
}

void note_run_begins() { the_job().has_stepped = false; }
void note_step_done() { the_job().has_stepped = true; }

void fail_job(const std::string& message, int status) {
  Job& self = the_job();
  MOX_ASSERT(self.watch != nullptr, "a job of several ranks can fail");
  self.watch->end_job(fmt::format("{} failed at global step {}: {}", self.watch->name_of(self.ranks->rank()),
                                  self.watch->step(), message),
                      status);
}

void stop_job(const std::string& what, int status) {
  Job& self = the_job();
  MOX_ASSERT(self.watch != nullptr, "a job of several ranks can be stopped");
  self.watch->end_job(fmt::format("{} {}", self.watch->name_of(self.ranks->rank()), what), status);
}

}  // namespace mox::internal
