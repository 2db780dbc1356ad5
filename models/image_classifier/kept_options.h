// The options that say what a trained network takes: those of its run, wherever it is used.
#pragma once

#include <moxing/moxing.h>

#include <memory>
#include <string>
#include <vector>

namespace image_classifier {

// Which of `options` and of the options data.* and augmentation.* a run keeps in its checkpoints.
std::vector<mox::KeptOption> kept_options(std::vector<mox::KeptOption> options);

// Keeps them, and what the names of recipes mean.
std::shared_ptr<mox::Hook> kept_options_hook(std::vector<mox::KeptOption> options);

// After mox::init, before the options are read: takes those of the run that this one goes on with or uses, as
// mox::use_kept_options. Throws ConfigError, too, for a network of images that were numbers already (npz,
// csv, mnist) and files of images, or the other way round: they are scaled otherwise. A run of before the
// MobileNets had a recipe of their own goes on with LeNet's, which it has learnt with, and a warning says so.
void use_options_of_run(const std::vector<mox::KeptOption>& options);

}  // namespace image_classifier
