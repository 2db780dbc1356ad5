// The white space of JSON, against the layout of the library that reads it.
#include "moxing/checkpoint/internal/json_layout.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace mox {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kTexts[] = {
    "null",
    "-1.5e-07",
    R"("a \"quoted\" word, a back\\slash\\, a brace } and a colon : ")",
    "[]",
    "{}",
    "[[],[{}],[[]]]",
    R"({"b":[1,2,{"a":"x"}],"a":{},"":null})",
    R"({"a":{"b":{"c":[true,false,"]"]}},"d":"{\n"})",
};

TEST(JsonLayout, IsThatOfTheLibrary) {
  for (const char* text : kTexts) {
    const Json value = Json::parse(text);
    EXPECT_EQ(internal::indented(text, 0), value.dump(2));
    EXPECT_EQ(internal::compact(value.dump(3)), text);
    const Json held = {{"held", value}};
    EXPECT_EQ("{\n  \"held\": " + internal::indented(value.dump(1), 2) + "\n}", held.dump(2));
  }
}

TEST(JsonLayout, FindsMembers) {
  for (const char* text : kTexts) {
    const Json value = Json::parse(text);
    if (!value.is_object()) continue;
    const auto members = internal::members_of(text);
    ASSERT_EQ(members.size(), value.size()) << text;
    size_t next = 0;
    for (const auto& [key, member] : value.items()) {
      EXPECT_EQ(members[next].first, Json(key).dump());
      EXPECT_EQ(members[next++].second, member.dump());
    }
  }
}

}  // namespace
}  // namespace mox
