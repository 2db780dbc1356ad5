#include "moxing/cli/internal/completion_script.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>
#include <vector>

namespace mox::cli {
namespace {

struct Entry {
  std::string name, description;
};

// A command, "mox checkpoint show", with what may follow it.
struct Table {
  std::string path;
  std::vector<Entry> commands, options;
};

std::vector<Entry> options_of(const CLI::App& command) {
  std::vector<Entry> options;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_positional()) continue;
    for (const std::string& name : option->get_lnames())
      options.push_back({"--" + name, option->get_description()});
    for (const std::string& name : option->get_snames())
      options.push_back({"-" + name, option->get_description()});
  }
  return options;
}

void append_tables(const CLI::App& command, const std::string& path, std::vector<Table>* tables) {
  Table table{path, {}, options_of(command)};
  const auto subcommands = command.get_subcommands([](const CLI::App*) { return true; });
  for (const CLI::App* below : subcommands)
    table.commands.push_back({below->get_name(), below->get_description()});
  tables->push_back(std::move(table));
  for (const CLI::App* below : subcommands) append_tables(*below, path + " " + below->get_name(), tables);
}

// The tables, and what `mox help` takes.
std::vector<Table> tables_of(const CLI::App& mox) {
  std::vector<Table> tables;
  append_tables(mox, "mox", &tables);
  for (Table& table : tables)
    if (table.path == "mox help") table.commands = tables.front().commands;
  return tables;
}

std::string words_of(const std::vector<Entry>& entries) {
  std::string words;
  for (const Entry& entry : entries) words += (words.empty() ? "" : " ") + entry.name;
  return words;
}

// Every command below another one, as a pattern of `case`.
std::string paths_below(const std::vector<Table>& tables) {
  std::string paths;
  for (const Table& table : tables)
    if (table.path != "mox") paths += fmt::format("{}\"{}\"", paths.empty() ? "" : " | ", table.path);
  return paths;
}

// 'show:What it is' of zsh's _describe.
std::string described(const Entry& entry) {
  std::string text = "'";
  const auto append = [&](const std::string& words, bool escapes_colons) {
    for (const char c : words) {
      if (c == ':' && escapes_colons) text += '\\';
      text += c == '\'' ? "'\\''" : c == '\n' ? " " : std::string(1, c);
    }
  };
  append(entry.name, true);
  text += ':';
  append(entry.description, false);
  return text + "'";
}

std::string list_of(const std::vector<Entry>& entries) {
  std::string list;
  for (const Entry& entry : entries) list += (list.empty() ? "" : " ") + described(entry);
  return list;
}

// @PATHS@: the commands below another one; @CASES@: what follows each; @PROGRAMS@.
constexpr std::string_view kBash = R"BASH(# Completion of mox for bash:  source <(mox completion bash)
_mox() {
  local path=mox word current=${COMP_WORDS[COMP_CWORD]} commands options i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; ++i)); do
    word=${COMP_WORDS[i]}
    [[ $word == -- ]] && return 0  # behind it: a program and its arguments
    case "$path $word" in
      @PATHS@) path="$path $word" ;;
    esac
  done
  case $path in
@CASES@  esac
  [[ $current == -* ]] && commands=$options
  mapfile -t COMPREPLY < <(compgen -W "$commands" -- "$current")
}
complete -o bashdefault -o default -F _mox mox

# A program that reads its options with mox::init lists them in --help.
_mox_program() {
  local current=${COMP_WORDS[COMP_CWORD]} options
  COMPREPLY=()
  [[ $current == -* ]] || return 0
  options=$("$1" --help 2>/dev/null | grep -oE '^  --[A-Za-z0-9_.-]+=?')
  mapfile -t COMPREPLY < <(compgen -W "$options" -- "$current")
  [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace
  return 0
}
complete -o bashdefault -o default -F _mox_program @PROGRAMS@
)BASH";

constexpr std::string_view kZsh = R"ZSH(#compdef mox @PROGRAMS@
# Completion of mox for zsh: behind compinit  source <(mox completion zsh)  or as a file _mox in $fpath
_mox() {
  local at=mox word i
  local -a commands options
  if [[ ${words[1]:t} != mox ]]; then  # a program that lists its options in --help
    options=(${(f)"$(${words[1]} --help 2>/dev/null | grep -oE '^  --[A-Za-z0-9_.-]+=?' | tr -d ' ')"})
    if [[ $PREFIX == -* ]]; then compadd -S '' -a options; else _files; fi
    return
  fi
  for ((i = 2; i < CURRENT; ++i)); do
    word=${words[i]}
    if [[ $word == -- ]]; then _files; return; fi
    case "$at $word" in
      @PATHS@) at="$at $word" ;;
    esac
  done
  case $at in
@CASES@  esac
  if [[ $PREFIX == -* ]]; then
    _describe option options
  elif (( $#commands )); then
    _describe command commands
  else
    _files
  fi
}
if [[ $funcstack[1] == _mox ]]; then _mox "$@"; else compdef _mox mox @PROGRAMS@; fi
)ZSH";

std::string filled(std::string_view script, const std::vector<Entry>& values) {
  std::string text(script);
  for (const auto& [name, value] : values)
    for (size_t at = 0; (at = text.find(name, at)) != std::string::npos; at += value.size())
      text.replace(at, name.size(), value);
  return text;
}

}  // namespace

std::string bash_completion(const CLI::App& mox, std::span<const std::string> programs) {
  const std::vector<Table> tables = tables_of(mox);
  std::string cases;
  for (const Table& table : tables)
    cases += fmt::format("    \"{}\") commands=\"{}\" options=\"{}\" ;;\n", table.path,
                         words_of(table.commands), words_of(table.options));
  return filled(kBash, {{"@PATHS@", paths_below(tables)},
                        {"@CASES@", cases},
                        {"@PROGRAMS@", fmt::format("{}", fmt::join(programs, " "))}});
}

std::string zsh_completion(const CLI::App& mox, std::span<const std::string> programs) {
  const std::vector<Table> tables = tables_of(mox);
  std::string cases;
  for (const Table& table : tables)
    cases += fmt::format("    \"{}\")\n      commands=({})\n      options=({}) ;;\n", table.path,
                         list_of(table.commands), list_of(table.options));
  return filled(kZsh, {{"@PATHS@", paths_below(tables)},
                       {"@CASES@", cases},
                       {"@PROGRAMS@", fmt::format("{}", fmt::join(programs, " "))}});
}

}  // namespace mox::cli
