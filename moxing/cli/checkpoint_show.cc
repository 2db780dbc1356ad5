// mox checkpoint show: what is in a checkpoint.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "moxing/checkpoint/checkpoint.h"
#include "moxing/cli/internal/checkpoint_here.h"
#include "moxing/cli/internal/command.h"
#include "runtime/text/printable.h"

namespace mox::cli {
namespace {

void print_table(std::string_view title, std::span<const NamedArray> arrays) {
  size_t name_width = 4, shape_width = 5, bytes = 0;
  int64_t elements = 0;
  for (const NamedArray& array : arrays) {
    name_width = std::max(name_width, printable(array.name).size());
    shape_width = std::max(shape_width, to_string(array.value.shape()).size());
    bytes += array.value.bytes();
    elements += array.value.elements();
  }
  fmt::print("\n{}: {} ({} parameters, {} bytes)\n", title, arrays.size(), elements, bytes);
  if (arrays.empty()) return;
  const auto row = [&](std::string_view name, std::string_view dtype, std::string_view shape, auto parameters,
                       auto size) {
    fmt::print("  {:<{}}  {:<8}  {:<{}}  {:>12}  {:>14}  ", name, name_width, dtype, shape, shape_width,
               parameters, size);
  };
  row("name", "dtype", "shape", "parameters", "bytes");
  fmt::print("checksum\n");
  for (const NamedArray& array : arrays) {
    row(printable(array.name), to_string(array.value.dtype()), to_string(array.value.shape()),
        array.value.elements(), array.value.bytes());
    fmt::print("verified\n");  // loading would have failed otherwise
  }
}

}  // namespace

void add_checkpoint_show(CLI::App& checkpoint) {
  CLI::App* command = checkpoint.add_subcommand(
      "show",
      "Show step, variables and optimizer slots (names, dtypes, shapes, sizes, checksums) and the state");
  auto path = std::make_shared<std::string>();
  command->add_option("DIR", *path, "A checkpoint, or a log_dir (its latest checkpoint)")->required();
  command->callback([path] {
    std::string directory;
    const Checkpoint loaded = load_checkpoint(checkpoint_here(*path), &directory);
    fmt::print("checkpoint: {}\nglobal step: {}\ndigest: {}\n", printable(directory), loaded.global_step,
               arrays_digest(loaded.variables));
    print_table("variables", loaded.variables);
    print_table("optimizer slots", loaded.optimizer_slots);
    fmt::print("\nstate: {} entries\n", loaded.state.size());
    for (const auto& [key, json] : loaded.state)
      fmt::print("  {}: {}\n", printable(key), printable_lines(json));
  });
}

}  // namespace mox::cli
