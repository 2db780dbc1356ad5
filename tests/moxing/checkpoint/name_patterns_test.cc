#include "moxing/checkpoint/name_patterns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/base/error.h"
#include "tests/support/message_of.h"

namespace mox {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using Names = std::vector<std::string>;

const Names kNames = {"net/conv1/kernel", "net/conv1/bias", "net/logits/kernel"};

TEST(NamePatterns, OneThatIsFoundAnywhereMatches) {
  const NamePatterns patterns("freeze", {"conv[0-9]/", "^logits"});
  EXPECT_TRUE(patterns.match("net/conv1/kernel"));
  EXPECT_FALSE(patterns.match("net/logits/kernel"));
  EXPECT_TRUE(patterns.match("logits/kernel"));
  EXPECT_FALSE(NamePatterns().match("net/conv1/kernel"));
}

TEST(NamePatterns, MistakesNameTheOptionAndThePattern) {
  EXPECT_THAT(message_of<InvalidArgument>([] { NamePatterns("freeze", {"conv("}); }),
              AllOf(HasSubstr("freeze: 'conv('"), HasSubstr("no regular expression")));
  EXPECT_THAT(message_of<InvalidArgument>([] { NamePatterns("freeze", {""}); }), HasSubstr("is empty"));
  const NamePatterns patterns("freeze", {"conv1", "conv9"});
  EXPECT_THAT(message_of<InvalidArgument>([&] { patterns.require_used(kNames, "the model"); }),
              AllOf(HasSubstr("'conv9'"), HasSubstr("none of the 3 names of the model"),
                    HasSubstr("net/conv1/kernel")));
}

TEST(NamePatterns, ANameThatAnExpressionCouldNotStandIsRefused) {
  const NamePatterns patterns("freeze", {"(a*)*b"});
  EXPECT_THAT(message_of<DataError>([&] { patterns.match(std::string(100000, 'a')); }),
              HasSubstr("100000 bytes"));
}

TEST(NameReplacements, ApplyOneAfterTheOther) {
  const NameReplacements pairs("checkpoint_rename", {{"^net/", "resnet/"}, {"conv([0-9])", "block$1"}});
  EXPECT_THAT(pairs.apply(kNames, "the checkpoint"),
              ElementsAre("resnet/block1/kernel", "resnet/block1/bias", "resnet/logits/kernel"));
}

TEST(NameReplacements, ThatDoNothingOrMakeTwoOneAreRefused) {
  const NameReplacements idle("checkpoint_rename", {{"tower", "net"}});
  EXPECT_THAT(message_of<InvalidArgument>([&] { idle.apply(kNames, "the checkpoint"); }),
              HasSubstr("'tower' is found in none of the 3 names"));
  const NameReplacements merging("checkpoint_rename", {{"conv1|logits", "x"}});
  EXPECT_THAT(message_of<InvalidArgument>([&] { merging.apply(kNames, "the checkpoint"); }),
              HasSubstr("both become 'net/x/kernel'"));
  const NameReplacements erasing("checkpoint_rename", {{".*", ""}});
  EXPECT_THAT(message_of<InvalidArgument>([&] { erasing.apply(kNames, "the checkpoint"); }),
              HasSubstr("leaves a name empty"));
}

TEST(NameReplacements, AreWrittenWithAnArrow) {
  const auto pairs = parse_replacements("checkpoint_rename", {"^net/ -> ", "a->b"});
  EXPECT_THAT(pairs, ElementsAre(std::pair<std::string, std::string>("^net/", ""),
                                 std::pair<std::string, std::string>("a", "b")));
  EXPECT_EQ(parse_replacements("checkpoint_rename", replacement_texts(pairs)), pairs);
  EXPECT_THAT(message_of<InvalidArgument>([] { parse_replacements("checkpoint_rename", {"a=b"}); }),
              HasSubstr("expected PATTERN -> REPLACEMENT, got 'a=b'"));
}

}  // namespace
}  // namespace mox
