// mox help: what a name means, from the pages that are compiled in.
#include <fmt/format.h>

#include <CLI/Error.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "moxing/cli/internal/command.h"
#include "moxing/cli/internal/reference.h"
#include "runtime/base/error.h"
#include "runtime/base/nearest_name.h"

namespace mox::cli {
namespace {

// Nothing if there is no such command.
CLI::App* command_called(CLI::App& mox, const std::string& name) {
  try {
    return mox.get_subcommand(name);
  } catch (const CLI::OptionNotFound&) {
    return nullptr;
  }
}

}  // namespace

void add_help(CLI::App& mox) {
  CLI::App* command = mox.add_subcommand("help",
                                         "Show what a name means: a command, an op, layer, metric, hook, "
                                         "data set operation, optimizer, schedule, option, or a field of a "
                                         "struct");
  auto name = std::make_shared<std::string>();
  command->add_option("NAME", *name, "relu, Dataset::shuffle, layers::dense, batch_size, adam, ...");
  command->callback([&mox, name] {
    if (name->empty()) {
      // mox.help() is that of the command which was given: this one.
      fmt::print("{}", mox.get_formatter()->make_help(&mox, mox.get_name(), CLI::AppFormatMode::All));
      return;
    }
    if (const CLI::App* called = command_called(mox, *name)) {
      fmt::print("{}", called->help("", CLI::AppFormatMode::All));
      return;
    }
    const std::string text = reference_of(*name, reference_pages());
    if (text.empty()) {
      const std::string nearest = internal::nearest_name(*name, reference_names(reference_pages()));
      throw NotFound(fmt::format("there is no '{}' among commands and names{}; docs/reference lists them",
                                 *name, nearest.empty() ? "" : fmt::format(": is '{}' meant?", nearest)));
    }
    fmt::print("{}", text);
  });
}

}  // namespace mox::cli
