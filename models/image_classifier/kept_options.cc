#include "models/image_classifier/kept_options.h"

#include <algorithm>

#include "models/image_classifier/classifier_data.h"
#include "models/image_classifier/temporary_flags.h"

namespace image_classifier {

std::vector<mox::KeptOption> kept_options(std::vector<mox::KeptOption> options) {
  // Data of another format, range or numbering may be evaluated on, and another size looked at.
  const std::vector<mox::KeptOption> of_data{{"data.format", true},       {"data.num_classes", true},
                                             {"data.label_offset", true}, {"data.csv_maximum", true},
                                             {"augmentation.recipe"},     {"augmentation.fast_decode", true}};
  options.insert(options.end(), of_data.begin(), of_data.end());
  return options;
}

void use_options_of_run(const std::vector<mox::KeptOption>& options) {
  std::vector<mox::KeptOption> used = options;
  // A size that is given is that of the evaluation, too.
  if (mox::is_given("model.image_size"))
    std::erase_if(used, [](const mox::KeptOption& option) { return option.name == "model.eval_image_size"; });
  const auto kept = mox::use_kept_options(mox::mode_from_string(mox::flag("run_mode")), mox::log_dir_of_run(),
                                          mox::checkpoint_path_of_run(), used);
  const auto trained = kept.find("data.format");
  const std::string format = mox::flag("data.format");
  if (trained == kept.end() || augments_images(trained->second) == augments_images(format)) return;
  throw mox::ConfigError("data.format is '" + format + "' (" + mox::option_origin("data.format") +
                         "), and the model was trained on '" + trained->second +
                         "': pixels of the one are scaled otherwise than those of the other. Give it data of "
                         "the format that it was trained on");
}

}  // namespace image_classifier
