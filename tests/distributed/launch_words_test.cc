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

}  // namespace
}  // namespace mox
