// mox import: a torchvision state as a checkpoint.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <memory>
#include <string>

#include "models/zoo/torch_state.h"
#include "moxing/checkpoint/checkpoint.h"
#include "moxing/checkpoint/safetensors.h"
#include "moxing/cli/internal/command.h"
#include "runtime/base/error.h"
#include "runtime/text/printable.h"

namespace mox::cli {

void add_import(CLI::App& mox) {
  CLI::App* command = mox.add_subcommand("import",
                                         "Turn a torchvision state (safetensors) into a checkpoint of step 0 "
                                         "for the zoo's network, and print the table of names");
  struct Arguments {
    std::string model, file, log_dir;
  };
  auto arguments = std::make_shared<Arguments>();
  command
      ->add_option("--model", arguments->model,
                   fmt::format("One of: {}", fmt::join(importable_models(), ", ")))
      ->required();
  command->add_option("FILE", arguments->file, "The state, a .safetensors file")->required();
  command->add_option("DIR", arguments->log_dir, "Where the checkpoint goes: a directory without checkpoints")
      ->required();
  command->footer(
      "The epsilon of batch normalisations is no part of a state, and torchvision's is 1e-5, as the zoo's is by "
      "default. For a state that was trained with another eps, make the network with the same "
      "batch_norm_epsilon: else its outputs are others.");
  command->callback([arguments] {
    const SafetensorsFile state = read_safetensors(arguments->file);
    const auto imported = import_torch_state(arguments->model, state.tensors);
    if (const auto latest = latest_checkpoint(arguments->log_dir))
      throw FailedPrecondition(fmt::format("'{}' holds a checkpoint already ({}); choose another directory",
                                           arguments->log_dir, *latest));
    Checkpoint checkpoint;
    for (const ImportedVariable& entry : imported) {
      checkpoint.variables.push_back(entry.variable);
      fmt::print("{} -> {} {}{}\n", printable(entry.torch_name), printable(entry.variable.name),
                 to_string(entry.variable.value.type()), entry.transposed ? " transposed" : "");
    }
    fmt::print("{} variables in {}\n", imported.size(), save_checkpoint(arguments->log_dir, checkpoint));
  });
}

}  // namespace mox::cli
