#include "runtime/data/shuffled.h"

#include "runtime/data/internal/node.h"

namespace mox {

bool is_shuffled(const Dataset& dataset) { return dataset.node()->order_changes(); }

}  // namespace mox
