// The words of a command line as they were written. CLI11 has a notation of its own: where an option takes
// several words, it splits '[a,b]' at the comma, to '{}' it gives none, and newer ones halve '[[aa]]'.
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

namespace mox::cli {

// The words of main's arguments in the order that CLI11 takes, from the last one on; those that it might take
// for its notation begin with a mark.
std::vector<std::string> marked_words(int argc, char** argv);

// A positional argument of one word or more, which come without their marks.
CLI::Option* add_words(CLI::App& command, const std::string& name, std::vector<std::string>* words,
                       const std::string& description);

// Takes the marks off the words of all other options, once all commands are there.
void take_off_marks(CLI::App& command);

// Of a text in which words may stand.
std::string without_marks(std::string text);

}  // namespace mox::cli
