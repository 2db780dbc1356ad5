// keep_best.*, early_stopping.* and plateau.*: what follows the evaluations of a training.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "moxing/hooks/hooks.h"

namespace mox::internal {

struct SelectionSettings {
  std::optional<KeepBestOptions> keep_best = {};
  std::optional<MonitorOptions> early_stopping = {};
  std::optional<PlateauOptions> plateau = {};
};

// What the program says, after the configuration has had its say: a section whose metric is empty is off.
// Throws what resolve throws, and ConfigError for an option of a section that is off, given in the
// configuration: it would have no effect.
SelectionSettings resolve_selection(const SelectionSettings& from_code);

std::vector<std::shared_ptr<Hook>> selection_hooks(const SelectionSettings& settings);

}  // namespace mox::internal
