// mox completion: the script with which a shell completes the command line.
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Validators.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "moxing/cli/internal/command.h"
#include "moxing/cli/internal/completion_script.h"

namespace mox::cli {
namespace {

// The programs that are installed beside mox.
const std::vector<std::string> kPrograms = {"cifar_resnet",     "dim_reduce_resnet", "fashion_lenet",
                                            "image_classifier", "mnist_softmax",     "tabular"};

}  // namespace

void add_completion(CLI::App& mox) {
  CLI::App* command = mox.add_subcommand(
      "completion",
      "Print a script that completes mox and the programs beside it: source <(mox completion bash)");
  auto shell = std::make_shared<std::string>();
  command->add_option("SHELL", *shell, "bash or zsh")->required()->check(CLI::IsMember({"bash", "zsh"}));
  command->callback([&mox, shell] {
    fmt::print("{}", *shell == "bash" ? bash_completion(mox, kPrograms) : zsh_completion(mox, kPrograms));
  });
}

}  // namespace mox::cli
