#include "models/image_classifier/fine_tuning.h"

#include <models/zoo/torch_state.h>
#include <models/zoo/zoo.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string>
#include <vector>

#include "models/image_classifier/temporary_flags.h"
#include "moxing/file/jobs/local_places.h"
#include "runtime/base/file.h"

namespace image_classifier {
namespace {

// The variables of a file: ours by name, or those that a torchvision state stands for.
std::vector<mox::NamedArray> variables_of_file(const std::string& path, const std::string& network) {
  mox::SafetensorsFile file = mox::read_safetensors(path);
  const bool is_ours = std::ranges::any_of(
      file.tensors, [&](const mox::NamedArray& tensor) { return tensor.name.starts_with(network + "/"); });
  if (is_ours) return std::move(file.tensors);
  std::vector<mox::NamedArray> variables;
  const std::string head = mox::get_model_meta(network).head;
  for (mox::ImportedVariable& imported : mox::import_torch_state(network, file.tensors, head))
    variables.push_back(std::move(imported.variable));
  return variables;
}

mox::StartingVariables without_head(const std::string& given, const std::string& network) {
  const std::string path =
      mox::file::local_checkpoint(given, mox::file::places_directory(mox::flag("file.local_directory")));
  const bool is_file = mox::is_there_as_file(path);
  mox::StartingVariables result{.origin = path};
  std::vector<mox::NamedArray> all =
      is_file ? variables_of_file(path, network) : mox::load_trained(path, &result.origin).variables;
  const std::string head = mox::get_model_meta(network).head;
  for (mox::NamedArray& variable : all)
    if (variable.name.starts_with(network + "/") && !mox::is_in_scope(variable.name, head))
      result.variables.push_back(std::move(variable));
  if (result.variables.empty())
    throw mox::ConfigError("model.pretrained: '" + given + "' has no variables of the network " + network +
                           " beside its head; it is of another network (model.name)");
  return result;
}

// A pattern that finds all variables of the network but its head's.
std::string backbone_pattern(const std::string& network) {
  const std::string head = mox::get_model_meta(network).head;
  return "^" + network + "/(?!" + head.substr(network.size() + 1) + "/)";
}

// Whether the run in log_dir has not come to the end of the frozen epochs. Rank 0 looks.
bool has_frozen_steps_to_do(int64_t samples) {
  std::string directory;
  const auto latest = mox::load_latest_checkpoint(mox::log_dir_of_run(), &directory);
  if (!latest) return true;
  const auto taken = latest->state.find("elements_taken");
  if (taken == latest->state.end()) return true;
  const std::string& text = taken->second;
  int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size() || count < 0)
    throw mox::DataError("'" + directory +
                         "': the state of the checkpoint has no whole number in elements_taken, but '" +
                         text.substr(0, 100) +
                         "'; it is damaged or of another program: go on from an older one, "
                         "or with another log_dir");
  return count < samples;
}

}  // namespace

void define_fine_tuning_flags() {
  mox::define_flag("model.pretrained", "",
                   "Where the network but for its last layer comes from: a torchvision state or a file of "
                   "variables (.safetensors), or a checkpoint or train_url of ours. The last layer begins "
                   "anew, for any number of classes. Empty: all begins with initial values.");
  mox::define_flag(
      "model.freeze_epochs", 0,
      "Passes over the data in which the last layer alone is trained, at the begin of a run that "
      "starts from model.pretrained or checkpoint_path.");
}

std::function<mox::StartingVariables()> pretrained_variables(const std::string& network) {
  const std::string path = mox::flag("model.pretrained");
  if (path.empty() || mox::flag("run_mode") != "train") return {};
  if (!mox::flag("checkpoint_path").empty())
    throw mox::InvalidArgument("model.pretrained is '" + path + "' and checkpoint_path is '" +
                               mox::flag("checkpoint_path") +
                               "': a training starts from one of them; the first begins the last layer anew");
  // A run that goes on does not read it, and would not miss it. Rank 0 alone has to see it.
  if (mox::rank() == 0 && !mox::file::is_remote(path) && !mox::is_there(path))
    throw mox::NotFound("model.pretrained is '" + path + "' (" + mox::option_origin("model.pretrained") +
                        "), and there is no such file or directory: expected is a torchvision state or a "
                        "file of variables (.safetensors), a checkpoint or a train_url");
  return [path, network] { return without_head(path, network); };
}

int train_head_first(const std::string& network, const std::function<int64_t()>& epoch_size,
                     const std::function<int()>& train) {
  const auto epochs = mox::get_flag<int64_t>("model.freeze_epochs");
  if (epochs == 0 || mox::flag("run_mode") != "train") return 0;
  if (epochs < 0)
    throw mox::InvalidArgument("model.freeze_epochs must be at least 0, it is " + std::to_string(epochs));
  if (mox::flag("model.pretrained").empty() && mox::flag("checkpoint_path").empty())
    throw mox::InvalidArgument(
        "model.freeze_epochs is set, but neither model.pretrained nor checkpoint_path is: a network that has "
        "learnt nothing would be frozen");
  if (mox::log_dir_of_run().empty())
    throw mox::InvalidArgument(
        "model.freeze_epochs is set, but train_url is not: what is learnt is kept there");
  const auto max_epochs = mox::get_flag<int64_t>("max_epochs");
  if (max_epochs > 0 && epochs > max_epochs)
    throw mox::InvalidArgument("model.freeze_epochs is " + std::to_string(epochs) +
                               ", more than max_epochs, " + std::to_string(max_epochs));
  const int64_t samples = epoch_size();
  if (samples < 0)
    throw mox::InvalidArgument(
        "model.freeze_epochs is set, but the size of an epoch of the training data is not known");
  const bool begins = mox::rank() == 0 && has_frozen_steps_to_do(samples * epochs);
  if (mox::broadcast(begins ? "yes" : "no") == "no") return 0;
  TemporaryFlags flags;
  auto patterns = mox::get_flag<std::vector<std::string>>("freeze");
  patterns.push_back(backbone_pattern(network));
  flags.set("freeze", patterns);
  flags.set("max_epochs", epochs);
  // What these do, stop or slow the training and keep all trained variables, is meant of the whole network.
  for (const char* section : {"early_stopping", "plateau", "snapshots"}) flags.switch_off(section);
  return train();
}

}  // namespace image_classifier
