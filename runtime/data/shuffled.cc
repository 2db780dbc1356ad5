#include "runtime/data/shuffled.h"

#include "runtime/data/internal/node.h"

namespace mox {

bool is_shuffled(const Dataset& dataset) { return dataset.node()->order_changes(); }

bool mixes_passes(const Dataset& dataset) { return dataset.node()->mixes_passes(); }

}  // namespace mox
