// Weights of torchvision's networks as variables of ours.
//
// A torchvision state has a tensor a parameter, under names such as "layer1.0.conv1.weight"; the networks of
// the zoo (models/zoo) call theirs "resnet_v1_50/block1/unit_1/conv1/kernel". The order of axes is the same
// except for dense kernels, which torchvision keeps as [out, in] and we as [in, out].
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "moxing/checkpoint/named_array.h"

namespace mox {

struct ImportedVariable {
  std::string torch_name;
  NamedArray variable;      // shares the state's memory unless transposed
  bool transposed = false;  // [out, in] -> [in, out]
};

// The variables of the zoo's network `model` that the tensors of a torchvision state are, in the order of
// `state`.
// "...num_batches_tracked" is the only entry without a counterpart (the weight of a moving average is fixed
// here). A state saved of a network within another module (DataParallel, torch.compile, a Lightning module),
// all of whose names begin with "module.", "_orig_mod." or "model.", is the same state.
//
// Throws InvalidArgument for a model that importable_models does not list, and DataError, naming the tensor,
// for a tensor that is not float32, not finite or that the network does not have, and for a state that lacks
// some of the network's tensors, but for those of variables in the scope `may_lack`. Shapes are compared when
// the checkpoint is restored, as they depend on num_classes and image size.
std::vector<ImportedVariable> import_torch_state(std::string_view model, std::span<const NamedArray> state,
                                                 const std::string& may_lack = "");

// The way back: the torchvision state of the network `model` that `variables` are, sorted by torchvision's
// names, which import_torch_state makes the same variables of, bit for bit. `steps` is what the entries
// "...num_batches_tracked" say. torchvision's batch normalisations have the epsilon 1e-5, which is no part of
// a state: where NetworkOptions::batch_norm_epsilon was another, theirs is to be set to it. Throws
// InvalidArgument as above, and DataError, naming it, for a variable in the network's scope that torchvision
// has not, for one that is missing, and for one of another type. Variables outside of that scope have no
// place in it.
std::vector<NamedArray> export_torch_state(std::string_view model, std::span<const NamedArray> variables,
                                           int64_t steps);

// torchvision's name and ours of every variable of `model`, sorted. Throws InvalidArgument as above.
std::vector<std::pair<std::string, std::string>> torch_variable_names(std::string_view model);

// The networks of the zoo that torchvision has, too.
std::vector<std::string> importable_models();

}  // namespace mox
