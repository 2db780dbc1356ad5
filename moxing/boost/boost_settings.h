// The options of snapshots and of dimension-reduced training, after the configuration has had its say.
#pragma once

#include <optional>
#include <string>

#include "moxing/boost/boost_options.h"
#include "moxing/boost/snapshot_hook.h"

namespace mox::internal {

// None if no snapshots are written. Throws what resolve throws.
std::optional<SnapshotHookOptions> resolve_snapshots(const std::optional<SnapshotHookOptions>& from_code);

// None if stage 2 is off: by boost_level, boost.mode or boost.dim_reduce. Throws what resolve throws, and
// ConfigError if the configuration describes a stage 2 without a word on whether there is one.
std::optional<DimReduceOptions> resolve_dim_reduce(const std::optional<std::string>& level,
                                                   const std::optional<BoostOptions>& boost_from_code,
                                                   const std::optional<DimReduceOptions>& from_code);

}  // namespace mox::internal
