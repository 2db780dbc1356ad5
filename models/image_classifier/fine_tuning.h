// Fine-tuning: a network that begins with what was learnt elsewhere, for any number of classes.
#pragma once

#include <moxing/moxing.h>

#include <cstdint>
#include <functional>
#include <string>

namespace image_classifier {

// Declares model.pretrained and model.freeze_epochs. Call before mox::init.
void define_fine_tuning_flags();

// What RunSpec::starting_variables gets for model.pretrained: the variables of `network` but for its head
// (the layer whose size is the number of classes), from a torchvision state (a .safetensors file), a file of
// variables or a checkpoint of ours. Empty if the option is, and where nothing is trained. Throws
// InvalidArgument if checkpoint_path is set, too, NotFound for what is not there; the function throws what
// readers throw, and ConfigError for what has nothing of the network.
std::function<mox::StartingVariables()> pretrained_variables(const std::string& network);

// Has `train` run with everything but the head frozen, until model.freeze_epochs passes over the data, of
// epoch_size() samples each, are done, if this run has some of them before it. Afterwards the options are the
// run's own again, and a further training in the same log_dir goes on from there. Returns an exit status, 0
// if the run may go on. All ranks call it together.
int train_head_first(const std::string& network, const std::function<int64_t()>& epoch_size,
                     const std::function<int()>& train);

}  // namespace image_classifier
