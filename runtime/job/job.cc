#include "runtime/job/job.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <set>

#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/job/internal/rank_watch.h"

namespace mox::internal {
namespace {

// What init makes, for the life of the process.
struct Job {
  std::unique_ptr<Communicator> communicator = std::make_unique<Communicator>();
  std::unique_ptr<RankWatch> watch;  // with several ranks
  std::atomic<const char*> doing{""};
  std::atomic<double> warn_seconds{30}, abort_seconds{600};
  std::set<std::string> warned;  // stalls that were reported; of the thread that drives the communicator
};

Job& the_job() {
  static Job* const job = new Job;  // never destroyed: threads of the process may outlive main
  return *job;
}

std::string host_name() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

// All threads that the process has by now, and with them those that they start: a thread that sends gradients
// on another rank's cores would take time from that rank.
void bind_process(const cpu_set_t& cores) {
  std::error_code error;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", error))
    sched_setaffinity(std::atoi(task.path().filename().c_str()), sizeof cores, &cores);
  if (error) sched_setaffinity(0, sizeof cores, &cores);
}

// Ranks of one machine that may all use the same cores take a share each; where mpirun has bound them, they
// differ already.
void take_share_of_cores(Communicator& communicator) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  const auto masks = communicator.allgather_equal({reinterpret_cast<const char*>(&allowed), sizeof allowed});
  for (int rank = 0; rank < communicator.size(); ++rank)
    if (communicator.host(rank) == communicator.host(communicator.rank()) &&
        masks[static_cast<size_t>(rank)] != masks[static_cast<size_t>(communicator.rank())])
      return;
  const int cores = CPU_COUNT(&allowed), ranks = communicator.local_size();
  if (cores == 0 || ranks == 1) return;
  // Of fewer cores than ranks each rank gets one, which it shares.
  const int first = static_cast<int>(int64_t{communicator.local_rank()} * cores / ranks);
  const int last =
      std::max(first + 1, static_cast<int>((int64_t{communicator.local_rank()} + 1) * cores / ranks));
  cpu_set_t share;
  CPU_ZERO(&share);
  for (int core = 0, seen = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &allowed)) continue;
    if (seen >= first && seen < last) CPU_SET(core, &share);
    ++seen;
  }
  bind_process(share);
}

// Who holds the others up, and what is known of it. `statuses[own]` says what this rank waits for.
std::string describe_stall(const RankWatch& watch, std::span<const RankStatus> statuses, int own,
                           double seconds) {
  const StallCause cause = find_stall_cause(statuses, own);
  std::vector<std::string> parts;
  if (cause.ranks.empty()) {
    for (const int rank : cause.circle) {
      const RankStatus& status = statuses[static_cast<size_t>(rank)];
      parts.push_back(fmt::format("{} waits for rank {} in '{}' at global step {}", watch.name_of(rank),
                                  fmt::join(status.missing, ", "), status.waits_in, status.step));
    }
    return fmt::format(
        "the ranks wait for each other: {}; all must run the same steps and call the same functions, "
        "and have not gone on for {:.0f} s",
        fmt::join(parts, ", "), seconds);
  }
  for (const int rank : cause.ranks) parts.push_back(watch.name_of(rank));
  const RankStatus& waiter = statuses[static_cast<size_t>(cause.waiter)];
  const RankStatus& first = statuses[static_cast<size_t>(cause.ranks.front())];
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

RankStatus own_status() {
  Job& self = the_job();
  RankStatus status{
      .answers = true, .step = self.watch->step(), .doing = self.doing.load(), .waits_in = "", .missing = {}};
  if (const auto wait = self.communicator->longest_wait()) {
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
    if (watch.has_left(rank))
      watch.end_job(fmt::format(
          "{} has come to the end of its program, but {} needs it for '{}' at global step {}; all "
          "ranks must run the same steps and call the same functions",
          names.back(), watch.name_of(self.communicator->rank()), what, watch.step()));
  }
  if (seconds < std::min(self.warn_seconds.load(), self.abort_seconds.load())) return;
  const bool is_over = seconds >= self.abort_seconds;
  const std::string stall = fmt::format("{} {} {}", what, watch.step(), fmt::join(missing, " "));
  if (!is_over && !self.warned.insert(stall).second) return;

  const int own = self.communicator->rank();
  std::vector<RankStatus> statuses = watch.ask_all();
  statuses[static_cast<size_t>(own)] = {.answers = true,
                                        .step = watch.step(),
                                        .doing = "",
                                        .waits_in = what,
                                        .missing = {missing.begin(), missing.end()}};
  const std::string text = describe_stall(watch, statuses, own, seconds);
  if (is_over)
    watch.end_job(text +
                  " (stall_abort_s), so the job ends; started again, it goes on from its last checkpoint");
  if (speaker(statuses, own) != own) return;
  log_warning(text + fmt::format(". The job ends after {:.0f} s (stall_abort_s)", self.abort_seconds.load()));
}

// At the end of the program. A process that ends in another way has its connections closed by the kernel,
// which the other ranks take for what it is.
void leave_job() {
  Job& self = the_job();
  if (!self.watch) return;
  std::fflush(nullptr);  // mpirun may kill the others once one has ended with a status of its own
  self.watch->leave();
  self.watch.reset();
  self.communicator.reset();  // MPI_Finalize
}

}  // namespace

Communicator& job() { return *the_job().communicator; }

void join_job(LogLevel least_level) {
  Job& self = the_job();
  if (self.watch || launched_ranks() == 1) return;
  self.communicator = std::make_unique<Communicator>(std::make_unique<MpiTransport>(), host_name());
  Communicator& communicator = *self.communicator;
  std::vector<std::string> hosts;
  for (int rank = 0; rank < communicator.size(); ++rank) hosts.push_back(communicator.host(rank));
  if (communicator.rank() == 0) {
    const RankWatch::Listener listener = RankWatch::listen();
    communicator.broadcast_text(listener.invitation);
    self.watch = std::make_unique<RankWatch>(listener, std::move(hosts));
  } else {
    self.watch =
        std::make_unique<RankWatch>(communicator.broadcast_text(""), communicator.rank(), std::move(hosts));
  }
  self.watch->set_status(own_status);
  communicator.set_stall_listener(report_stall);
  take_share_of_cores(communicator);
  if (communicator.rank() != 0 && least_level < LogLevel::kWarning) set_log_level(LogLevel::kWarning);
  std::atexit(leave_job);
}

void set_stall_limits(double warn_seconds, double abort_seconds) {
  the_job().warn_seconds = warn_seconds;
  the_job().abort_seconds = abort_seconds;
}

void set_job_step(int64_t step) {
  if (the_job().watch) the_job().watch->set_step(step);
}

JobActivity::JobActivity(const char* doing) : before_(the_job().doing.exchange(doing)) {}
JobActivity::~JobActivity() { the_job().doing = before_; }

void fail_job(const std::string& message) {
  Job& self = the_job();
  MOX_ASSERT(self.watch != nullptr, "a job of several ranks can fail");
  self.watch->end_job(fmt::format("{} failed at global step {}: {}",
                                  self.watch->name_of(self.communicator->rank()), self.watch->step(),
                                  message));
}

}  // namespace mox::internal
