// The collective operations that the engine and users wait for. See Operation.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/comm/operation.h"

namespace mox::internal {

// The memory behind the spans and results belongs to the caller and outlives the operation.
// Of `members`, sorted; the calling rank is one of them.
std::unique_ptr<Operation> make_barrier(std::vector<int> members);
std::unique_ptr<Operation> make_broadcast(std::span<std::byte> data, int root);
// make_allgather (operation.h) for lengths that may differ: `results` have their final lengths already.
std::unique_ptr<Operation> make_allgather_of_known_lengths(std::span<const std::byte> data,
                                                           std::vector<std::string>* results);

}  // namespace mox::internal
