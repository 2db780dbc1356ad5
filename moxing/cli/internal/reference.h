// The pages of docs/reference, and of others that have a row for each name, as the command has
// them compiled in.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mox::cli {

// A Markdown page: its name in docs/, and its text. Generated from docs/ when the command is built.
struct ReferencePage {
  std::string_view name, text;
};
std::span<const ReferencePage> reference_pages();

// What the pages say of `name`, as text for a terminal: a declaration ("relu", "Dataset::shuffle",
// "layers::dense", or its last part alone), a field of a struct ("label_smoothing", "RunSpec::batch_size"),
// or what has a row in a table (an option, an optimizer, a network of the zoo). A "mox::" before it counts
// for nothing. Several answers follow each other; none is "".
std::string reference_of(std::string_view name, std::span<const ReferencePage> pages);

// All names that reference_of knows in full, sorted.
std::vector<std::string> reference_names(std::span<const ReferencePage> pages);

}  // namespace mox::cli
