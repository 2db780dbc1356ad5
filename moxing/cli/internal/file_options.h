// The parts of `mox file`.
#pragma once

#include <CLI/App.hpp>

namespace mox::cli {

// --endpoint, --region ... in front of the verb: where the store is, beside what the environment says.
void add_store_options(CLI::App& file);

// cp, mv, sync.
void add_file_copies(CLI::App& file);

}  // namespace mox::cli
