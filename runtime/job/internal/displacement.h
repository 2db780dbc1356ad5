// How many connections that have proved nothing rank 0 holds, and which of them goes for one more.
#pragma once

#include <sys/resource.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>

namespace mox::internal {

// Of a process that may have so many files open: what strangers take of them is missing to MPI.
size_t most_strangers(rlim_t may_be_open);

// By the addresses that they come from, at least one: any of those whose address has the most connections. So
// whoever comes again and again displaces his own, and where he comes from a rank's host, those whose
// handshake takes its time are not always the ones that go, as the oldest would be.
size_t whom_to_displace(std::span<const uint32_t> sources, std::minstd_rand& chance);

}  // namespace mox::internal
