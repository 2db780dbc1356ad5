// A session that can tell what its hooks keep in checkpoints, for those that write others beside them.
// Hooks of earlier parts of the run that this one has not are among them.
#pragma once

#include <map>
#include <string>

namespace mox::internal {

class HookStates {
 public:
  virtual std::map<std::string, std::string> hook_states() const = 0;  // by Hook::name

 protected:
  ~HookStates() = default;
};

}  // namespace mox::internal
