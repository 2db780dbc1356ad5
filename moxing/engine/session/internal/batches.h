// What input_fn returns, as batches.
#pragma once

#include <cstdint>

#include "moxing/engine/session/internal/run_settings.h"
#include "moxing/engine/session/run_spec.h"
#include "moxing/model/mode_keys.h"
#include "runtime/data/dataset.h"

namespace mox::internal {

// What input_fn(mode) returns. Throws what it throws; OutOfMemory, naming it, for memory that was refused.
Dataset data_of(const RunSpec& spec, ModeKeys mode);

// In batches of `size` samples, or as it is where auto_batch says that input_fn(mode) does that itself.
// Throws ConfigError where it then has an element that can be no batch.
Dataset batches_of(const Dataset& dataset, const RunSettings& settings, ModeKeys mode, int64_t size);

}  // namespace mox::internal
