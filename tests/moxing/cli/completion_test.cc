// Completion by the shells themselves.
#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/temporary_directory.h"

namespace mox {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::Not;

using Words = std::vector<std::string>;

Words lines_of(const std::string& command) {
  std::string text;
  FILE* const pipe = ::popen(command.c_str(), "r");
  char piece[4096];
  for (size_t size; (size = std::fread(piece, 1, sizeof piece, pipe)) > 0;) text.append(piece, size);
  EXPECT_EQ(::pclose(pipe), 0) << command << "\n" << text;
  Words lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// What the tab key finds at the end of `words`.
Words completed_by_bash(const std::string& function, const Words& words) {
  std::string list;
  for (const std::string& word : words) list += " '" + word + "'";
  const TemporaryDirectory directory;
  directory.write("ask.bash",
                  "PATH=" MOX_BINARY_DIR "/bin:$PATH\nsource <(mox completion bash)\nCOMP_WORDS=(" + list +
                      ")\nCOMP_CWORD=" + std::to_string(words.size() - 1) + "\n" + function + " '" +
                      words[0] + "'\nfor word in \"${COMPREPLY[@]}\"; do echo \"$word\"; done\n");
  return lines_of("bash " + directory.file("ask.bash") + " 2>/dev/null");
}

TEST(BashCompletion, KnowsCommandsAndOptions) {
  EXPECT_THAT(completed_by_bash("_mox", {"mox", "ch"}), ElementsAre("checkpoint"));
  EXPECT_THAT(completed_by_bash("_mox", {"mox", ""}),
              IsSupersetOf({"checkpoint", "convert", "file", "help", "launch", "completion"}));
  EXPECT_THAT(completed_by_bash("_mox", {"mox", "checkpoint", ""}),
              testing::UnorderedElementsAre("show", "list", "verify", "digest"));
  EXPECT_THAT(completed_by_bash("_mox", {"mox", "checkpoint", "ver"}), ElementsAre("verify"));
  EXPECT_THAT(completed_by_bash("_mox", {"mox", "convert", "folder", "--s"}),
              testing::UnorderedElementsAre("--shards", "--seed"));
  EXPECT_THAT(completed_by_bash("_mox", {"mox", "--ver"}), ElementsAre("--version"));
  EXPECT_THAT(completed_by_bash("_mox", {"mox", "help", "conv"}), ElementsAre("convert"));
  EXPECT_THAT(completed_by_bash("_mox", {"mox", "convert", "fol"}), IsEmpty()) << "names of files";
  EXPECT_THAT(completed_by_bash("_mox", {"mox", "launch", "--", "prog", "--h"}), IsEmpty());
}

TEST(BashCompletion, KnowsTheOptionsOfPrograms) {
  EXPECT_THAT(completed_by_bash("_mox_program", {"fashion_lenet", "--batch_s"}),
              ElementsAre("--batch_size="));
  EXPECT_THAT(completed_by_bash("_mox_program", {"fashion_lenet", "--dropo"}), ElementsAre("--dropout="));
  EXPECT_THAT(completed_by_bash("_mox_program", {"fashion_lenet", "x"}), IsEmpty());
}

// The script is registered for mox and for what is installed beside it.
TEST(BashCompletion, IsRegistered) {
  const TemporaryDirectory directory;
  directory.write("ask.bash",
                  "source <(" MOX_BINARY_DIR "/bin/mox completion bash)\ncomplete -p mox image_classifier\n");
  EXPECT_THAT(lines_of("bash " + directory.file("ask.bash")),
              ElementsAre("complete -o bashdefault -o default -F _mox mox",
                          "complete -o bashdefault -o default -F _mox_program image_classifier"));
}

// The completion system of zsh needs a terminal: what the function would hand to it is printed instead.
Words completed_by_zsh(const Words& words) {
  std::string list;
  for (const std::string& word : words) list += " '" + word + "'";
  const TemporaryDirectory directory;
  directory.write("ask.zsh", "path=(" MOX_BINARY_DIR
                             "/bin $path)\ncompdef() { : }\n_files() { print files }\n"
                             "_describe() { print -l -- ${(P)2} }\ncompadd() { print -l -- ${(P)4} }\n"
                             "source <(mox completion zsh)\nwords=(" +
                                 list + ")\nCURRENT=" + std::to_string(words.size()) +
                                 "\nPREFIX=${words[-1]}\n_mox\n");
  return lines_of("zsh -f " + directory.file("ask.zsh"));
}

TEST(ZshCompletion, KnowsCommandsAndOptions) {
  if (std::system("command -v zsh >/dev/null") != 0) GTEST_SKIP() << "needs zsh";
  EXPECT_THAT(completed_by_zsh({"mox", ""}), Contains("checkpoint:Inspect checkpoints"));
  EXPECT_THAT(completed_by_zsh({"mox", "checkpoint", ""}), Contains(testing::StartsWith("verify:")));
  EXPECT_THAT(completed_by_zsh({"mox", "convert", "--s"}), Contains("--shards:Number of files (default 1)"));
  EXPECT_THAT(completed_by_zsh({"mox", "convert", ""}), ElementsAre("files"));
  EXPECT_THAT(completed_by_zsh({"fashion_lenet", "--b"}), Contains("--batch_size="));
}

}  // namespace
}  // namespace mox
