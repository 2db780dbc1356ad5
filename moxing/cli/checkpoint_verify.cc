// mox checkpoint verify: reads every byte of the checkpoints of a log_dir, or of one checkpoint.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>

#include "moxing/checkpoint/checkpoint.h"
#include "moxing/cli/internal/checkpoint_here.h"
#include "moxing/cli/internal/command.h"
#include "runtime/base/error.h"
#include "runtime/text/printable.h"

namespace mox::cli {

void add_checkpoint_verify(CLI::App& checkpoint) {
  CLI::App* command = checkpoint.add_subcommand(
      "verify",
      "Verify every checksum of a checkpoint, or of all checkpoints of a log_dir; fails if one is wrong");
  auto path = std::make_shared<std::string>();
  command->add_option("DIR", *path, "A checkpoint, or a log_dir (all of its checkpoints)")->required();
  command->callback([path] {
    const std::string place = checkpoints_here(*path);
    auto entries = list_checkpoints(place);
    if (entries.empty()) entries.push_back({0, resolve_checkpoint(place)});
    size_t damaged = 0;
    for (const CheckpointEntry& entry : entries) {
      try {
        load_checkpoint(entry.path);
        fmt::print("intact   {}\n", printable(entry.path));
      } catch (const NotFound&) {
        // By a run that saves beside us; where a file alone is missing, that is damage.
        fmt::print("deleted  {}\n", printable(entry.path));
      } catch (const Error& error) {
        ++damaged;
        fmt::print("damaged  {}: {}\n", printable(entry.path), printable_message(error.what()));
      }
    }
    if (damaged > 0)
      throw DataError(fmt::format("{} of {} checkpoints cannot be used; the lines on stdout say why", damaged,
                                  entries.size()));
  });
}

}  // namespace mox::cli
