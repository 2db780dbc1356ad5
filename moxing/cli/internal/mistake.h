// What is told of a command line that cannot be understood.
#pragma once

#include <CLI/App.hpp>
#include <string>

namespace mox::cli {

// `what` is the parser's own text. Names the command that does not exist and those that do, and whose help to
// ask for.
std::string mistake(const CLI::App& mox, const std::string& what);

}  // namespace mox::cli
