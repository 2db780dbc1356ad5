#include "runtime/data/content_sample.h"

#include "runtime/data/internal/node.h"

namespace mox {

std::vector<std::string> content_sample(const Dataset& dataset) { return dataset.node()->contents(); }

}  // namespace mox
