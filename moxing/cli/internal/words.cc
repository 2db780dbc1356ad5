#include "moxing/cli/internal/words.h"

#include <algorithm>
#include <string_view>

namespace mox::cli {
namespace {

constexpr char kMark = '\x1f';
constexpr std::string_view kMarked = "[{%\x1f";  // where the mark itself is a word's own, it has two

std::string without_its_mark(std::string word) {
  if (word.starts_with(kMark)) word.erase(0, 1);
  return word;
}

// Of add_words, which takes the marks off itself: to CLI11 '{}' means something even after it has called what
// changes words.
bool is_for_words(const CLI::Option& option) {
  return option.get_positional() && option.get_allow_extra_args();
}

}  // namespace

std::vector<std::string> marked_words(int argc, char** argv) {
  std::vector<std::string> words;
  for (int i = argc - 1; i > 0; --i) {
    const std::string_view word = argv[i];
    const bool is_marked = !word.empty() && kMarked.find(word[0]) != std::string_view::npos;
    words.push_back(is_marked ? kMark + std::string(word) : std::string(word));
  }
  return words;
}

CLI::Option* add_words(CLI::App& command, const std::string& name, std::vector<std::string>* words,
                       const std::string& description) {
  const auto take = [words](const std::vector<std::string>& marked) {
    words->clear();
    std::ranges::transform(marked, std::back_inserter(*words), without_its_mark);
  };
  return command.add_option_function<std::vector<std::string>>(name, take, description);
}

void take_off_marks(CLI::App& command) {
  for (CLI::Option* option : command.get_options())
    if (!is_for_words(*option)) option->transform(without_its_mark);
  for (CLI::App* below : command.get_subcommands([](CLI::App*) { return true; })) take_off_marks(*below);
}

std::string without_marks(std::string text) {
  std::erase(text, kMark);
  return text;
}

}  // namespace mox::cli
