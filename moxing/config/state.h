// The process-wide configuration and its lock: the one place of global state.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "moxing/config/internal/store.h"
#include "moxing/file/jobs/local_places.h"

namespace mox {
class MemoryBudget;
}

namespace mox::internal {

struct ConfigState {
  ConfigStore store{};
  bool configured = false;  // by mox::init or mox::configure
  // Of what the options name in a store, the copies that have been made on this machine.
  std::map<std::string, std::string> copies{};
  // The same of data sets, whose places nobody else may fill.
  std::map<std::string, std::shared_ptr<file::DataInUse>> data{};
  std::shared_ptr<MemoryBudget> data_memory{};  // see data_memory_of_process
  std::set<std::string> warnings{};             // that warn_once has given
};

// Runs `use` on the current configuration, under the lock.
void with_config(const std::function<void(ConfigState*)>& use);

// The same for a configured one; otherwise throws FailedPrecondition, which names the caller (`function`).
void with_configured(std::string_view function, const std::function<void(ConfigStore*)>& use);

// Whether mox::init or mox::configure has been called.
bool is_configured();

// A fresh configuration that hides the current one until it is popped.
void push_config();
void pop_config();

}  // namespace mox::internal
