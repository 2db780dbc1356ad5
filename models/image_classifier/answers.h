// What run_mode predict says of each image.
#pragma once

#include <moxing/moxing.h>

#include <string>
#include <vector>

namespace image_classifier {

// Declares the options. Call before mox::init.
void define_prediction_flags();

// The classes of the trained run, from the labels.txt beside the checkpoint that is used, or from that
// itself; empty if neither has them. All ranks call it together; rank 0 looks.
std::vector<std::string> label_names_of_run();

// Prints a line for each image on stdout, "daisy.jpg: daisy 0.932, rose 0.041", with as many classes as
// predict.top says; nothing if predictions go to a file. Takes the output_info "probabilities".
mox::OutputFn print_answers(const std::vector<std::string>& label_names);

}  // namespace image_classifier
