// Who has copies of the variables, and who applies the optimizer (the option variable_update).
//
//   replicated_host   One copy a process, which all lanes read; each gradient is applied to it as soon as it
//                     is summed.
//   replicated        A copy, with an optimizer of its own, for each lane; when all gradients are summed,
//                     each lane applies them to its own.
//   parameter_server  The copy of rank 0 is the server's, and only rank 0 applies gradients, which the others
//                     send to it. Then it sends the variables to the other processes, and each lane copies
//                     them before it computes.
//
// All three compute the same bits. The last two are there to be compared with: they are what the options of
// the same name do in TensorFlow's benchmarks.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "moxing/model/variable_store.h"

namespace mox::internal {

enum class UpdateScheme { kReplicatedHost, kReplicated, kParameterServer };
// One of the three names above.
UpdateScheme update_scheme_from_string(std::string_view name);

class VariableCopies {
 public:
  VariableCopies(UpdateScheme scheme, VariableStore& store, int lanes)
      : scheme_(scheme), store_(store), copies_(static_cast<size_t>(lanes)) {}

  UpdateScheme scheme() const { return scheme_; }
  // The variable as the plans of a lane read it, made on the first call. Throws what VariableStore::get
  // throws.
  Array of_lane(int lane, std::string_view name);
  // The one that checkpoints keep.
  Array host(std::string_view name) const { return store_.get(name); }

  // Copies all of the host's variables to the lane's, if a server has them. By the lane, before it computes.
  void pull(int lane);
  // The host's variable has changed in another way than by a gradient: all lanes' copies take its value.
  void refresh(std::string_view name);

 private:
  bool shares_host(int lane) const {
    return scheme_ == UpdateScheme::kReplicatedHost || (scheme_ == UpdateScheme::kReplicated && lane == 0);
  }

  const UpdateScheme scheme_;
  VariableStore& store_;
  std::vector<std::map<std::string, Array, std::less<>>> copies_;  // of each lane
};

}  // namespace mox::internal
