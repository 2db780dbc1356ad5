// mox help: what a name means, from the pages that are compiled in.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/Error.hpp>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "moxing/cli/internal/command.h"
#include "moxing/cli/internal/reference.h"
#include "moxing/cli/internal/words.h"
#include "runtime/base/error.h"
#include "runtime/base/nearest_name.h"

namespace mox::cli {
namespace {

// The command that these words call, "file cp"; nothing if there is none.
const CLI::App* command_called(const CLI::App& mox, const std::vector<std::string>& words) {
  const CLI::App* command = &mox;
  for (const std::string& word : words) {
    try {
      command = command->get_subcommand(word);
    } catch (const CLI::OptionNotFound&) {
      return nullptr;
    }
  }
  return command;
}

}  // namespace

void add_help(CLI::App& mox) {
  CLI::App* command = mox.add_subcommand("help",
                                         "Show what a name means: a command, an op, layer, metric, hook, "
                                         "data set operation, optimizer, schedule, option, or a field of a "
                                         "struct");
  auto words = std::make_shared<std::vector<std::string>>();
  add_words(*command, "NAME", words.get(), "relu, Dataset::shuffle, layers::dense, batch_size, adam, ...");
  command->callback([&mox, words] {
    if (words->empty()) {
      // mox.help() is that of the command which was given: this one.
      fmt::print("{}", mox.get_formatter()->make_help(&mox, mox.get_name(), CLI::AppFormatMode::All));
      return;
    }
    if (const CLI::App* called = command_called(mox, *words)) {
      // What stands before the command's own name in its usage.
      const std::span<const std::string> above(words->data(), words->size() - 1);
      fmt::print("{}", called->help(fmt::format("{}{}{}", mox.get_name(), above.empty() ? "" : " ",
                                                fmt::join(above, " ")),
                                    CLI::AppFormatMode::All));
      return;
    }
    const std::string name = fmt::format("{}", fmt::join(*words, " "));
    const std::string text = reference_of(name, reference_pages());
    if (text.empty()) {
      const std::string nearest = internal::nearest_name(name, reference_names(reference_pages()));
      throw NotFound(fmt::format("there is no '{}' among commands and names{}; docs/reference lists them",
                                 name, nearest.empty() ? "" : fmt::format(": is '{}' meant?", nearest)));
    }
    fmt::print("{}", text);
  });
}

}  // namespace mox::cli
