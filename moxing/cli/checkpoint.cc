// mox checkpoint: the group of commands on checkpoints.
#include "moxing/cli/internal/command.h"

namespace mox::cli {

void add_checkpoint(CLI::App& mox) {
  CLI::App* checkpoint = mox.add_subcommand("checkpoint", "Inspect checkpoints");
  checkpoint->require_subcommand(1);
  add_checkpoint_show(*checkpoint);
  add_checkpoint_list(*checkpoint);
  add_checkpoint_verify(*checkpoint);
  add_checkpoint_digest(*checkpoint);
}

}  // namespace mox::cli
