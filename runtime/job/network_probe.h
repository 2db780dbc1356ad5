// What a message costs between the ranks of a job, measured.
#pragma once

#include "runtime/comm/communicator.h"

namespace mox::internal {

struct NetworkCosts {
  double latency_s = 0;       // of a short message, one way
  double message_work_s = 0;  // that a processor takes in sending a short message and receiving one
};

// All ranks call it together, when nothing else is under way. One rank alone has no costs.
NetworkCosts measure_network(Communicator& ranks);

}  // namespace mox::internal
