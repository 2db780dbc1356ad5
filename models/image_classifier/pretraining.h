// Training on small images before that on the images themselves ("progressive resizing"; EfficientNetV2, Tan
// and Le, arXiv:2104.00298, section 4, grows them by stages): what a network learns first needs few pixels,
// and images of half the height and width take about a third of the time. What follows is a training of its
// own, which starts from these variables.
#pragma once

#include <cstdint>
#include <functional>

namespace image_classifier {

// Declares the options pretraining.*. Call before mox::init.
void define_pretraining_flags();

// The size of the images with which this run has to begin; 0: there is no pretraining, or train_url has a
// checkpoint from which the training after it goes on. All ranks call it together; rank 0 looks. Throws
// InvalidArgument for options that do not fit together.
int64_t pretraining_image_size();

// Has `train` do it: in train_url/pretraining, with the options pretraining.* in the place of the run's own
// and without evaluation. Afterwards the options are the run's own again, but that it starts from what was
// trained. Returns what `train` does: an exit status, 0 if the run may go on.
int pretrain(const std::function<int()>& train);

}  // namespace image_classifier
