// mox launch: what a program is given of the words after --.
#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include "tests/distributed/launch.h"

namespace mox {
namespace {

TEST_F(Launch, HandsTheProgramItsWordsAsTheyAre) {
  const Words words = {"[a,b]", "[]", "x", "{}", "", "--", "-n", "help", "[[cc]]", "a : b", "\x1f"};
  const ProcessResult result = run_process(Words{MOX_BINARY_DIR "/bin/mox", "launch", "-n", "1", "--",
                                                 script("words", "printf '<%s>\\n' \"$0\" \"$@\"\n")} +
                                           words);
  expect_success(result);
  std::string lines;
  for (const std::string& word : words) lines += "<" + word + ">\n";
  EXPECT_THAT(result.out, testing::EndsWith("words>\n" + lines));
}

// mpirun takes it for the beginning of another program.
TEST_F(Launch, AColonIsAWordOfTheProgramToo) {
  const std::string program = script("colons", "printf '<%s>\\n' \"$@\"\n");
  const ProcessResult result = run_process(
      {MOX_BINARY_DIR "/bin/mox", "launch", "-n", "1", "--", program, ":", "it's", "$HOME", ":", "-n", "2"});
  expect_success(result);
  EXPECT_EQ(result.out, "<:>\n<it's>\n<$HOME>\n<:>\n<-n>\n<2>\n");
}

}  // namespace
}  // namespace mox
