// mox checkpoint digest: one SHA-256 of the variables.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>

#include "moxing/checkpoint/checkpoint.h"
#include "moxing/cli/internal/checkpoint_here.h"
#include "moxing/cli/internal/command.h"

namespace mox::cli {

void add_checkpoint_digest(CLI::App& checkpoint) {
  CLI::App* command = checkpoint.add_subcommand("digest",
                                                "Print one SHA-256 over names, dtypes, shapes and bytes of "
                                                "the variables: equal digests, equal weights");
  auto path = std::make_shared<std::string>();
  command->add_option("DIR", *path, "A checkpoint, or a log_dir (its latest checkpoint)")->required();
  command->callback([path] { fmt::print("{}\n", checkpoint_digest(checkpoint_here(*path))); });
}

}  // namespace mox::cli
