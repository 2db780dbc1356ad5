// The job that this process is part of: one process, or those that `mpirun` or `mox launch` have started.
//
// A program needs none of this to train on many processes: mox::run does it. These functions are for what a
// program does beside, such as downloading a data set once a machine. All of them work before, between and
// after runs and in hooks, from the thread that runs; all ranks must call the same ones in the same order. In
// a single process they return at once.
//
// Needs mox::init, which joins the job. A rank that ends its program, throws out of mox::run or dies ends the
// whole job: every process ends with a message that names it (docs/distributed.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/tensor/array.h"

namespace mox {

int rank();        // 0 .. size() - 1
int size();        // processes of the job
int local_rank();  // among the processes on this machine
int local_size();

// Waits until all ranks are here.
void barrier();

// Every rank's `data` becomes that of `root`. Lengths are the same everywhere. Throws InvalidArgument for a
// root that is none of the ranks.
void broadcast(std::span<std::byte> data, int root = 0);
void broadcast(Array& array, int root = 0);
// The text of `root`, of any length.
std::string broadcast(std::string_view text, int root = 0);

// Each element becomes its sum over all ranks: in a fixed order, so with the same bits everywhere.
void allreduce(std::span<float> values);
void allreduce(std::span<double> values);
void allreduce(std::span<int64_t> values);

// What every rank gave, by rank; lengths may differ.
std::vector<std::string> allgather(std::string_view data);

// On each machine one process calls `function` while the other ones there wait for it; then they return,
// without waiting for other machines. However long it takes (a download of hours), nobody takes it for a
// stall as long as the process that works answers. If it throws, the exception leaves here on the rank that
// called it, which ends the job.
void mpi_local_sync_barrier(const std::function<void()>& function);

}  // namespace mox
