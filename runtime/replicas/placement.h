// Where the logical replicas of a run are computed.
//
// The global batch of a step is cut into `logical_replicas` parts of batch_size samples; each is computed by
// a team of `threads_per_replica`, with its own random numbers and its own batch-normalisation statistics,
// and the gradients meet in the tree of runtime/comm/summation_tree.h. These two numbers decide the bits of a
// run and are kept in its checkpoints. Ranks, devices and lanes decide only where and when.
//
//   rank     a process
//   device   a set of cores of a process; every device has as many replicas
//   lane     a thread (with its team) that computes replicas one after another; a device with cores enough
//            has several
#pragma once

#include <cstdint>
#include <string>

#include "runtime/comm/summation_tree.h"

namespace mox::internal {

struct PlacementRequest {
  int rank = 0, ranks = 1;
  int devices = 1;
  int cores = 1;                 // for all devices of this process
  int threads_per_device = 0;    // 0: cores / devices, at least 1
  int64_t logical_replicas = 0;  // 0: those of the checkpoint, else one a device
  int64_t kept_replicas = 0;     // of the checkpoint that is continued; 0: none is
  int kept_threads_per_replica = 0;
  bool allow_inexact = false;
  bool replicas_meet = false;   // they exchange values while they compute: each has a lane of its own
  std::string checkpoint = {};  // its path, for messages
};

struct Placement {
  int rank = 0, ranks = 1, devices = 1;
  int64_t logical_replicas = 1;
  int threads_per_replica = 1;
  int lanes = 1;  // of this process; lanes / devices of each device
  int cores_per_device = 1;
  bool replicas_meet = false;

  LeafRange replicas() const;  // of this process
  LeafRange replicas_of(int lane) const;
  int64_t replicas_per_lane() const { return replicas().size() / lanes; }
  std::string describe() const;  // "4 logical replicas: 2 ranks x 1 device x 2 lanes of 1 thread"
};

// Throws FailedPrecondition, with the placements that are possible, if the replicas cannot be spread evenly
// over the devices, or if a continued run cannot keep its replicas; with `allow_inexact` the run gets one
// replica a device instead, which is logged.
Placement place(const PlacementRequest& request);

}  // namespace mox::internal
