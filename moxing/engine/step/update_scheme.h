// The option variable_update: who has copies of the variables, and who applies the optimizer.
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

#include <string_view>

namespace mox::internal {

enum class UpdateScheme { kReplicatedHost, kReplicated, kParameterServer };

// One of the three names above.
UpdateScheme update_scheme_from_string(std::string_view name);

}  // namespace mox::internal
