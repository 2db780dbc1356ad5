// mox export-torch: a checkpoint as a torchvision state.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "models/zoo/torch_state.h"
#include "moxing/checkpoint/best_checkpoint.h"
#include "moxing/checkpoint/safetensors.h"
#include "moxing/cli/internal/command.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"

namespace mox::cli {

void add_export_torch(CLI::App& mox) {
  CLI::App* command = mox.add_subcommand(
      "export-torch",
      "Write the variables of a zoo network's checkpoint as a torchvision state (safetensors)");
  struct Arguments {
    std::string model, checkpoint, file;
  };
  auto arguments = std::make_shared<Arguments>();
  command
      ->add_option("--model", arguments->model,
                   fmt::format("One of: {}", fmt::join(importable_models(), ", ")))
      ->required();
  command
      ->add_option(
          "DIR", arguments->checkpoint,
          "A checkpoint; or a log_dir, whose best state is taken if its run restored it, else its latest")
      ->required();
  command->add_option("FILE", arguments->file, "The state, a .safetensors file that does not exist yet")
      ->required();
  command->footer(
      "The epsilon of batch normalisations is no part of a state, and torchvision's is 1e-5. Of a network that "
      "was made with another batch_norm_epsilon, set eps of each BatchNorm2d after load_state_dict: else its "
      "outputs are others.");
  command->callback([arguments] {
    if (is_there(arguments->file))
      throw FailedPrecondition(fmt::format("'{}' exists already; choose another name", arguments->file));
    std::string path;
    const Checkpoint checkpoint = load_trained(arguments->checkpoint, &path);
    const auto state = export_torch_state(arguments->model, checkpoint.variables, checkpoint.global_step);
    write_safetensors(arguments->file, state, {{"format", "pt"}});
    fmt::print("{} tensors of '{}' (global step {}) in {}\n", state.size(), path, checkpoint.global_step,
               arguments->file);
  });
}

}  // namespace mox::cli
