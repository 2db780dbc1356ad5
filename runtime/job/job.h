// The job that init joins, as the engine sees it.
#pragma once

#include <exception>
#include <string>

#include "runtime/base/log.h"
#include "runtime/comm/communicator.h"

namespace mox::internal {

// Exit status of a process that ends because another rank failed, was lost, or was waited for too long.
inline constexpr int kJobFailed = 1;
// Exit status of a process whose configuration, or another value that it was given, was refused before it had
// run anything: started again, it would end in the same way.
inline constexpr int kValueRefused = 2;
// The status for an error that ends the program: kValueRefused for InvalidArgument, ConfigError, NotFound and
// Conflict before the first training step of the run (or of the program) is through, else kJobFailed.
int exit_status_of(const std::exception& error);
void note_run_begins();
void note_step_done();

// Starts MPI if mpirun has started this process together with others, and watches over the other ranks from
// then on. Called by init; a second call does nothing. Takes the process's share of the cores of its machine,
// and leaves informing log lines (`least_level` is what the configuration asks for) to rank 0. Throws what
// MpiTransport throws.
void join_job(LogLevel least_level);

// The ranks of the job; one rank alone before join_job and where no mpirun is.
Communicator& job();

// The ranks whose machine's memory this one uses too, itself among them: those on this machine, and those in
// other containers of it.
int ranks_of_kernel();

// How long the job waits for a rank that does not send what it should: after `warn_seconds` the rank is
// named, after `abort_seconds` the job ends. `option`: the one that says so, for messages; a literal.
void set_stall_limits(double warn_seconds, double abort_seconds, const char* option = "stall_abort_s");

// The step that is under way, for messages.
void set_job_step(int64_t step);

// A rank that answers and does one of these is waited for without a limit.
inline constexpr const char* kLocalWork = "at work for its machine in mpi_local_sync_barrier";
inline constexpr const char* kCopying = "copying from the object store to its machine";

// What the calling thread does that keeps other ranks waiting, "saving a checkpoint" say, for messages; a
// literal. It is over when the object is gone.
class JobActivity {
 public:
  explicit JobActivity(const char* doing);
  ~JobActivity();
  JobActivity(const JobActivity&) = delete;
  JobActivity& operator=(const JobActivity&) = delete;

 private:
  const char* before_;
};

// Ends the job because this rank has failed: `message` is printed once, by rank 0 where that is possible,
// with this rank's number and host, and all processes end with `status`, of 1 to 125.
[[noreturn]] void fail_job(const std::string& message, int status = kJobFailed);
// The same for a rank that has not failed, but ends the job since a signal asks for it: "RANK `what`".
[[noreturn]] void stop_job(const std::string& what, int status);

}  // namespace mox::internal
