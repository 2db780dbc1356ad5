#include "runtime/data/content_sample.h"

#include "runtime/data/internal/node.h"

namespace mox {

std::vector<std::string> content_sample(const Dataset& dataset) {
  std::vector<std::string> lines;
  dataset.node()->append_contents(&lines);
  return lines;
}

}  // namespace mox
