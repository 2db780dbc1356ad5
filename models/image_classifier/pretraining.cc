#include "models/image_classifier/pretraining.h"

#include <moxing/moxing.h>

#include <string>

#include "models/image_classifier/temporary_flags.h"
#include "moxing/config/remote_places.h"
#include "runtime/base/opened_file.h"

namespace image_classifier {
void define_pretraining_flags() {
  mox::define_flag(
      "pretraining.image_size", 0,
      "Train on images of this height and width first, and then, from what was learnt, on those of "
      "model.image_size. 0: do not.");
  mox::define_flag("pretraining.epochs", 0, "Passes over the small images.");
  mox::define_flag("pretraining.learning_rate", "",
                   "The learning rate on the small images: a number or a schedule. Empty: "
                   "optimizer.learning_rate.");
}

int64_t pretraining_image_size() {
  const auto size = mox::get_flag<int64_t>("pretraining.image_size"),
             epochs = mox::get_flag<int64_t>("pretraining.epochs");
  if (epochs < 0)
    throw mox::InvalidArgument("pretraining.epochs must be at least 0, it is " + std::to_string(epochs));
  if (size == 0 && epochs > 0)
    throw mox::InvalidArgument("pretraining.epochs is " + std::to_string(epochs) +
                               ", but pretraining.image_size is 0: there would be no pretraining");
  if (size == 0) return 0;
  if (size < 0)
    throw mox::InvalidArgument("pretraining.image_size must be at least 1, or 0 for no pretraining; it is " +
                               std::to_string(size));
  if (epochs < 1)
    throw mox::InvalidArgument("pretraining.image_size is " + std::to_string(size) +
                               ", but pretraining.epochs is " + std::to_string(epochs) +
                               ": it must be at least 1");
  if (const auto frozen = mox::get_flag<int64_t>("model.freeze_epochs");
      frozen > 0 && mox::flag("run_mode") == "train")
    throw mox::InvalidArgument(
        "pretraining.image_size is " + std::to_string(size) + " and model.freeze_epochs is " +
        std::to_string(frozen) +
        ": the passes over small images train all layers, before those that are to stay as they are would be "
        "frozen. Leave one of the two out, or freeze in a first run and pretrain in a second that begins with "
        "it (checkpoint_path)");
  if (mox::internal::log_dir_as_given().empty())
    throw mox::InvalidArgument(
        "pretraining.image_size is set, but train_url is not: what is learnt is kept there");
  if (!mox::flag("pretraining.learning_rate").empty() && mox::flag("optimizer.learning_rate").empty())
    throw mox::InvalidArgument(
        "pretraining.learning_rate is set, but optimizer.learning_rate, for the training after it, is not");
  const bool begins =
      mox::rank() == 0 && mox::flag("run_mode") == "train" && !mox::latest_checkpoint(mox::log_dir_of_run());
  return mox::broadcast(begins ? "yes" : "no") == "yes" ? size : 0;
}

int pretrain(const std::function<int()>& train) {
  // In a store where the run has its place there: it is uploaded as it goes on.
  const std::string directory = mox::internal::log_dir_as_given() + "/pretraining";
  mox::require_no_link(directory);  // it is ours to make
  int status = 0;
  {
    TemporaryFlags flags;
    flags.set("log_dir", directory);
    // Nothing is evaluated, and what is kept is the training's that follows.
    flags.set("inter_mode", "none");
    for (const char* interval : {"eval_every_n_steps", "eval_every_n_secs", "eval_every_n_epochs"})
      flags.set(interval, 0);
    for (const char* section : {"keep_best", "early_stopping", "plateau", "snapshots"})
      flags.switch_off(section);
    // What is taken of a checkpoint is for the training that follows, if this one begins with none.
    if (mox::flag("checkpoint_path").empty()) {
      for (const char* option : {"checkpoint_include_patterns", "checkpoint_exclude_patterns",
                                 "checkpoint_rename", "on_shape_mismatch"})
        flags.switch_off(option);
    }
    flags.set("max_epochs", mox::get_flag<int64_t>("pretraining.epochs"));
    if (const std::string rate = mox::flag("pretraining.learning_rate"); !rate.empty())
      flags.set("optimizer.learning_rate", rate);
    status = train();
  }
  mox::set_flag("checkpoint_path", directory);
  return status;
}

}  // namespace image_classifier
