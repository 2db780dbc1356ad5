// The `mox` command. Each subcommand is one file with one function, which adds itself to its parent. A
// subcommand prints its result on stdout and throws a mox::Error when it cannot: main prints that and
// returns the status that programs end with, 2 for what is refused or not there and 1 for all else.
#pragma once

#include <CLI/App.hpp>

namespace mox::cli {

void add_checkpoint(CLI::App& mox);
void add_checkpoint_digest(CLI::App& checkpoint);
void add_checkpoint_list(CLI::App& checkpoint);
void add_checkpoint_show(CLI::App& checkpoint);
void add_checkpoint_verify(CLI::App& checkpoint);
void add_completion(CLI::App& mox);
void add_help(CLI::App& mox);
void add_import(CLI::App& mox);
void add_export_torch(CLI::App& mox);
void add_convert(CLI::App& mox);
void add_file(CLI::App& mox);
void add_forecast(CLI::App& mox);
// `exit_status`: that of the job, which becomes that of mox.
void add_launch(CLI::App& mox, int* exit_status);

}  // namespace mox::cli
