#include "moxing/cli/internal/mistake.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "moxing/cli/internal/words.h"
#include "runtime/base/nearest_name.h"
#include "runtime/text/printable.h"

namespace mox::cli {
namespace {

// ": did you mean 'show'?", or nothing.
std::string did_you_mean(const std::string& word, const std::vector<std::string>& known) {
  const std::string nearest = mox::internal::nearest_name(word, known);
  return nearest.empty() ? "" : fmt::format(": did you mean '{}'?", nearest);
}

}  // namespace

std::string mistake(const CLI::App& mox, const std::string& what) {
  const CLI::App* command = &mox;
  std::string name = mox.get_name();
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    name += " " + command->get_name();
  }
  std::vector<std::string> below, options;
  for (const CLI::App* known : command->get_subcommands({})) below.push_back(known->get_name());
  for (const CLI::Option* known : command->get_options())
    for (const std::string& option : known->get_lnames()) options.push_back("--" + option);
  const std::vector<std::string> unknown = command->remaining();
  std::string text = what;
  // "--" itself is no option, and what is before it has been understood.
  const bool is_of_command = !unknown.empty() && unknown.front() != "--";
  if (is_of_command && unknown.front().starts_with("--")) {
    // A slip in an option makes words of what comes after it: it is what has to be said.
    const std::string option = unknown.front().substr(0, unknown.front().find('='));
    text = fmt::format("there is no option '{}'{}", option, did_you_mean(option, options));
  } else if (!below.empty() && is_of_command && !unknown.front().starts_with('-')) {
    const std::string nearest = did_you_mean(unknown.front(), below);
    text = fmt::format("there is no command '{} {}'{} {}", name, unknown.front(),
                       nearest.empty() ? "; there are" : nearest + " There are", fmt::join(below, ", "));
  }
  if (name == "mox launch" && is_of_command)
    text += "; what belongs to the program comes after --, as in mox launch -n 2 -- PROGRAM --flag=value";
  return fmt::format("mox: {}. `{} --help` shows what there is.\n", printable_message(without_marks(text)),
                     name);
}

}  // namespace mox::cli
