// mox::run: trains, evaluates or predicts what an input function and a model function describe.
#pragma once

#include "moxing/engine/session/run_spec.h"

namespace mox {

// The exit status of a run that SIGINT, SIGTERM, SIGHUP or SIGUSR1 has stopped: sysexits.h calls it
// EX_TEMPFAIL, try again.
inline constexpr int kExitInterrupted = 75;

// Runs to the end and returns the exit status for main: 0; kExitInterrupted for a training, or a prediction
// of one process, that a signal has stopped in good order; or 1 after an error, which is printed on stderr in
// one paragraph (never a stack of exceptions); 2 for an InvalidArgument, ConfigError or NotFound before the
// first step: a value was refused, and the same command would be again. Needs mox::init. Blocks; one run at a
// time a process.
//
// The first SIGINT, SIGTERM, SIGHUP or SIGUSR1 lets a training finish its step, save a checkpoint and leave
// out the last evaluation; the same command goes on from there. A second one of the same kind ends the
// process at once.
//
// In a job of several processes (moxing/job/distributed.h) all of them call it together, with equal specs. An
// error on one rank is printed once, with the rank's name, and ends all processes with that status. A signal
// to one of them stops all after the same step; all return kExitInterrupted then, which mpirun and mox launch
// end with too.
//
// TRAIN continues the latest checkpoint of log_dir if there is one, else starts from checkpoint_path, else
// initialises. EVAL and PREDICT take the same precedence but need a checkpoint. Results go to stdout, one
// "test NAME: VALUE" line a metric after an evaluation; progress goes to stderr. EVAL and PREDICT also leave
// results.json beside the checkpoint, and a line in the metrics.jsonl there.
int run(const RunSpec& spec);

// The same, throwing the error instead of printing it: for programs that go on after a run, and for tests.
RunResult run_or_throw(const RunSpec& spec);

}  // namespace mox
