#include "runtime/replicas/placement.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/conflict.h"
#include "runtime/base/log.h"

namespace mox::internal {
namespace {

// "1, 2, 4": the numbers of devices, over all ranks, that `replicas` can be spread over.
std::string divisors(int64_t replicas) {
  std::string text;
  int listed = 0;
  for (int64_t n = 1; n <= replicas && listed < 64; ++n)
    if (replicas % n == 0) {
      text += (text.empty() ? "" : ", ") + std::to_string(n);
      ++listed;
    }
  return text;
}

std::string counted(int64_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

// That the replicas of `placement` cannot be spread over `all_devices`.
std::string uneven(const Placement& placement, int64_t all_devices) {
  return fmt::format("{} cannot be spread evenly over {} x {} = {} (ranks x devices); these numbers can: {}",
                     counted(placement.logical_replicas, "logical replica"), counted(placement.ranks, "rank"),
                     counted(placement.devices, "device"), all_devices, divisors(placement.logical_replicas));
}

// The largest number of lanes up to `most` that have equally many of a device's replicas.
int lanes_of_device(int64_t replicas, int64_t most) {
  for (int64_t lanes = std::min(replicas, most); lanes > 1; --lanes)
    if (replicas % lanes == 0) return lanes;
  return 1;
}

}  // namespace

LeafRange Placement::replicas() const {
  const int64_t share = logical_replicas / ranks;
  return {rank * share, (rank + 1) * share};
}

LeafRange Placement::replicas_of(int lane) const {
  const int64_t first = replicas().first + lane * replicas_per_lane();
  return {first, first + replicas_per_lane()};
}

std::string Placement::describe() const {
  return fmt::format("{}: {} x {} x {} of {}", counted(logical_replicas, "logical replica"),
                     counted(ranks, "rank"), counted(devices, "device"), counted(lanes / devices, "lane"),
                     counted(threads_per_replica, "thread"));
}

Placement place(const PlacementRequest& request) {
  Placement result;
  result.rank = request.rank;
  result.ranks = request.ranks;
  result.devices = request.devices;
  result.cores_per_device = request.threads_per_device > 0 ? request.threads_per_device
                                                           : std::max(1, request.cores / request.devices);
  const int64_t all_devices = int64_t{request.ranks} * request.devices;
  const bool continued = request.kept_replicas > 0;
  result.logical_replicas = continued ? request.kept_replicas : request.logical_replicas;
  std::string refusal;
  if (continued && request.logical_replicas > 0 && request.logical_replicas != request.kept_replicas) {
    refusal = fmt::format("'{}' was trained with {} and logical_replicas is {} now", request.checkpoint,
                          counted(request.kept_replicas, "logical replica"), request.logical_replicas);
    result.logical_replicas = request.logical_replicas;
  }
  if (result.logical_replicas == 0) result.logical_replicas = all_devices;
  if (result.logical_replicas % all_devices != 0) {
    refusal += (refusal.empty() ? "" : ", and ") + uneven(result, all_devices);
    if (request.allow_inexact) result.logical_replicas = all_devices;
  }
  // One replica on one device may use all of its cores. Several must compute alike wherever they are, so a
  // team is no larger than the smallest placement can give: one thread, unless the first start had one
  // replica a device and nothing fixed.
  const bool one_each = result.logical_replicas == all_devices;
  if (continued && refusal.empty() && result.logical_replicas > 1) {
    result.threads_per_replica = std::max(1, request.kept_threads_per_replica);
    if (result.threads_per_replica > result.cores_per_device) {
      refusal = fmt::format("'{}' was computed by teams of {}, and a device has {} here (threads_per_device)",
                            request.checkpoint, counted(result.threads_per_replica, "thread"),
                            result.cores_per_device);
      result.threads_per_replica = result.cores_per_device;
    }
  } else {
    const bool fixed = request.logical_replicas > 1 || !one_each;
    result.threads_per_replica = fixed ? 1 : result.cores_per_device;
  }
  if (!refusal.empty() && !request.allow_inexact)
    throw Conflict(
        refusal +
        ". Choose another number of ranks or num_devices, or go on with --allow_inexact: the result "
        "is then as good, but not the same to the last bit as on another placement");
  const int64_t replicas_per_device = result.logical_replicas / all_devices;
  result.replicas_meet = request.replicas_meet;
  result.lanes = request.replicas_meet
                     ? static_cast<int>(result.logical_replicas / request.ranks)
                     : request.devices * lanes_of_device(replicas_per_device, result.cores_per_device /
                                                                                  result.threads_per_replica);
  if (!refusal.empty())
    log_warning(
        fmt::format("{}; allow_inexact is set, so the run goes on with {}", refusal, result.describe()));
  return result;
}

}  // namespace mox::internal
