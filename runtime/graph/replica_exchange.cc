#include "runtime/graph/replica_exchange.h"

#include <utility>

namespace mox {
namespace {

thread_local ReplicaExchange* current = nullptr;

}  // namespace

EnteredExchange::EnteredExchange(ReplicaExchange* exchange) : previous_(std::exchange(current, exchange)) {}
EnteredExchange::~EnteredExchange() { current = previous_; }

ReplicaExchange* entered_exchange() { return current; }

}  // namespace mox
