// What torchvision calls the variables of the zoo's networks.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace mox::internal {

struct TorchName {
  std::string variable;  // our name, with the network's scope
  bool is_dense_kernel = false;
};

// By torchvision's name. Throws InvalidArgument for a network that torch_models does not list.
std::map<std::string, TorchName> torch_names(std::string_view model);

std::vector<std::string> torch_models();

}  // namespace mox::internal
