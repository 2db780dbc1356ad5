// How this process was started: alone, by an mpirun, or by a launcher whose processes cannot find each other.
#pragma once

namespace mox {

// MPI knows how many they are (a launcher that speaks PMIx and does not say it otherwise).
inline constexpr int kRanksKnownToMpi = -1;

// How many ranks the launcher has started, this process among them; 1 for a process that stands alone. Known
// are Open MPI's mpirun, and what speaks PMIx, as Slurm's `srun --mpi=pmix` does. Throws FailedPrecondition,
// with the way out, for one of several processes that another launcher has started (srun without PMIx, MPICH,
// torchrun, ...): each would believe to be alone, and train by itself. InvalidArgument for a number of
// processes that is none.
int launched_ranks();

}  // namespace mox
