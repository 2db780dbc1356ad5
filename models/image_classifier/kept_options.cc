#include "models/image_classifier/kept_options.h"

#include <models/zoo/older_recipes.h>

#include <algorithm>

#include "models/image_classifier/classifier_data.h"
#include "models/image_classifier/temporary_flags.h"
#include "moxing/config/warn_once.h"

namespace image_classifier {
namespace {

std::string kept_text_of(const std::map<std::string, std::string>& kept, const std::string& name) {
  const auto found = kept.find(name);
  return found == kept.end() ? "" : found->second;
}

// Sets the recipe to what the run has learnt with, where its name means something else by now.
void use_recipe_of(const std::map<std::string, std::string>& kept) {
  if (kept.contains(mox::kRecipesMark)) return;
  const std::string recipe = kept_text_of(kept, "augmentation.recipe"),
                    name = recipe.empty() ? kept_text_of(kept, "model.name") : recipe;
  const std::string learnt(mox::recipe_of_older_run(name));
  if (learnt == name) return;
  const std::string is_older = "was trained with augmentation.recipe '" + name +
                               "' by a program to which that was the preprocessing of '" + learnt + "'";
  if (mox::is_given("augmentation.recipe") && mox::option_origin("augmentation.recipe") != "set_flag")
    throw mox::ConfigError("augmentation.recipe is '" + mox::flag("augmentation.recipe") + "' (" +
                           mox::option_origin("augmentation.recipe") + "), and the model " + is_older +
                           ". Leave the option out to go on with that, or train anew in another log_dir");
  mox::set_flag("augmentation.recipe", learnt);
  if (mox::rank() == 0)
    mox::internal::warn_once("the model " + is_older + ", and goes on with that (augmentation.recipe=" +
                             learnt + "). Train anew for the recipe of its own");
}

}  // namespace

std::vector<mox::KeptOption> kept_options(std::vector<mox::KeptOption> options) {
  // Data of another format, range or numbering may be evaluated on, and another size looked at.
  const std::vector<mox::KeptOption> of_data{{"data.format", true},       {"data.num_classes", true},
                                             {"data.label_offset", true}, {"data.csv_maximum", true},
                                             {"augmentation.recipe"},     {"augmentation.fast_decode", true}};
  options.insert(options.end(), of_data.begin(), of_data.end());
  return options;
}

std::shared_ptr<mox::Hook> kept_options_hook(std::vector<mox::KeptOption> options) {
  return mox::kept_options_hook(std::move(options), {{mox::kRecipesMark, mox::kRecipesVersion}});
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
  if (trained == kept.end()) return;
  if (augments_images(trained->second) == augments_images(format)) {
    if (augments_images(format)) use_recipe_of(kept);
    return;
  }
  throw mox::ConfigError("data.format is '" + format + "' (" + mox::option_origin("data.format") +
                         "), and the model was trained on '" + trained->second +
                         "': pixels of the one are scaled otherwise than those of the other. Give it data of "
                         "the format that it was trained on");
}

}  // namespace image_classifier
