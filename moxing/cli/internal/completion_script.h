// What a shell completes of the `mox` command: its table of commands and options as a script.
#pragma once

#include <CLI/App.hpp>
#include <span>
#include <string>

namespace mox::cli {

// Scripts that complete commands, options and, behind them, names of files; of `programs`, which read their
// options with mox::init, what their own --help lists. For a shell to read at its start, or as a file of a
// directory of completions.
std::string bash_completion(const CLI::App& mox, std::span<const std::string> programs);
std::string zsh_completion(const CLI::App& mox, std::span<const std::string> programs);

}  // namespace mox::cli
