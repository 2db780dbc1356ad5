#include "moxing/cli/internal/mistake.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "runtime/text/printable.h"

namespace mox::cli {

std::string mistake(const CLI::App& mox, const std::string& what) {
  const CLI::App* command = &mox;
  std::string name = mox.get_name();
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    name += " " + command->get_name();
  }
  std::vector<std::string> below;
  for (const CLI::App* known : command->get_subcommands({})) below.push_back(known->get_name());
  const std::vector<std::string> unknown = command->remaining();
  std::string text = what;
  if (!below.empty() && !unknown.empty() && !unknown.front().starts_with('-'))
    text = fmt::format("there is no command '{} {}'; there are {}", name, unknown.front(),
                       fmt::join(below, ", "));
  else if (name == "mox launch" && !unknown.empty())
    text += "; what belongs to the program comes after --, as in mox launch -n 2 -- PROGRAM --flag=value";
  return fmt::format("mox: {}. `{} --help` shows what there is.\n", printable_message(text), name);
}

}  // namespace mox::cli
