#include "moxing/internal/job.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>

#include "moxing/internal/rank_watch.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"

namespace mox::internal {
namespace {

// What init makes, for the life of the process.
struct Job {
  std::unique_ptr<Communicator> communicator = std::make_unique<Communicator>();
  std::unique_ptr<RankWatch> watch;  // with several ranks
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

// Ranks of one machine that may all use the same cores take a share each; where mpirun has bound them, they differ already.
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
  sched_setaffinity(0, sizeof share, &share);
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
  const std::string text = fmt::format("{} {} not sent {} part of '{}' at global step {} for {:.0f} s",
                                       fmt::join(names, ", "), missing.size() == 1 ? "has" : "have",
                                       missing.size() == 1 ? "its" : "their", what, watch.step(), seconds);
  if (seconds >= self.abort_seconds)
    watch.end_job(text +
                  " (stall_abort_s), so the job ends; started again, it goes on from its last checkpoint");
  if (seconds < self.warn_seconds) return;
  // All others wait as this one does; the first of them speaks.
  for (int rank = 0; rank < self.communicator->rank(); ++rank)
    if (std::ranges::find(missing, rank) == missing.end()) return;
  if (!self.warned.insert(fmt::format("{} {} {}", what, watch.step(), fmt::join(missing, " "))).second)
    return;
  log_warning(text +
              fmt::format(": stopped, swapping, or cut off? The job ends after {:.0f} s (stall_abort_s)",
                          self.abort_seconds.load()));
}

// At the end of the program. A process that ends in another way has its connections closed by the kernel, which the other
// ranks take for what it is.
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

void fail_job(const std::string& message) {
  Job& self = the_job();
  MOX_ASSERT(self.watch != nullptr, "a job of several ranks can fail");
  self.watch->end_job(fmt::format("{} failed at global step {}: {}",
                                  self.watch->name_of(self.communicator->rank()), self.watch->step(),
                                  message));
}

}  // namespace mox::internal
