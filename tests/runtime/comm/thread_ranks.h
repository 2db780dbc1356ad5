// Runs a function as every rank of a job, each on a thread of its own.
#pragma once

#include <functional>
#include <thread>
#include <vector>

#include "runtime/comm/communicator.h"

namespace mox {

inline void run_ranks(int size, const std::function<void(Communicator&)>& body) {
  auto transports = make_thread_transports(size);
  std::vector<std::thread> threads;
  threads.reserve(transports.size());
  for (auto& transport : transports)
    threads.emplace_back([&body, &transport] {
      Communicator communicator(std::move(transport), "host");
      body(communicator);
      communicator.barrier();
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace mox
