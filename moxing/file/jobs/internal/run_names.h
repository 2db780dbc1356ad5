// What the names in a run's directory mean: which are of this machine alone, and what is a checkpoint.
#pragma once

#include <string>
#include <string_view>

namespace mox::file::internal {

// What the framework keeps in a run's directory for this machine, or has not finished there; by `name` in its
// own directory. All else is of the run, whatever it is called.
bool is_of_machine(std::string_view name, bool is_directory);

// Whether a state.json is the manifest of a checkpoint, and not a file that another program calls so.
bool begins_as_manifest(std::string_view content);

// Whether a file of a checkpoint's directory is one of those that every checkpoint has.
bool is_of_every_checkpoint(std::string_view name);

// Whether the directory `name` of a run ("checkpoint-9", "best/checkpoint-5") is called as a checkpoint.
bool has_checkpoint_name(const std::string& name);

// Whether it lies where the run itself looks for checkpoints: what lies there and is none stops it.
bool is_where_runs_look(const std::string& name);

}  // namespace mox::file::internal
