#include "moxing/cli/internal/host_slots.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "tests/support/message_of.h"

namespace mox::cli {
namespace {

using testing::HasSubstr;

std::string rank_table(int servers, const std::string& last = "") {
  std::string text = "{\"server_list\":[";
  for (int i = 0; i < servers; ++i)
    text += fmt::format("{}{{\"server_id\":\"{}\",\"device\":[{{\"rank_id\":{}}}]}}", i == 0 ? "" : ",",
                        i + 1 == servers && !last.empty() ? last : fmt::format("host-{}", i), i);
  return text + "]}";
}

// Each host was looked for among all others.
TEST(RankTable, OfManyServersIsReadSoonOrRefused) {
  const std::clock_t begin = std::clock();  // of this process alone
  EXPECT_EQ(parse_rank_table(rank_table(16'384), "table").size(), 16'384U);
  EXPECT_THAT(message_of<DataError>([] { parse_rank_table(rank_table(200'000), "dir/table"); }),
              HasSubstr("'dir/table' has 200000 servers: a job has at most 16384 hosts"));
  EXPECT_LT(std::clock() - begin, 20 * CLOCKS_PER_SEC);
}

TEST(RankTable, OfAServerThatIsThereTwiceIsRefused) {
  EXPECT_THAT(message_of<DataError>([] { parse_rank_table(rank_table(9, "host-4"), "table"); }),
              HasSubstr("the host 'host-4' is there twice"));
}

TEST(HostsFile, OfManyLinesIsReadSoon) {
  const size_t hosts = 16'384;
  const int times = 40;
  std::string text;
  for (int time = 0; time < times; ++time)
    for (size_t i = 0; i < hosts; ++i) text += fmt::format("a-host-of-a-long-name-{}\n", i);
  const std::clock_t begin = std::clock();  // of this process alone
  const auto read = parse_hosts(text, "hosts");
  EXPECT_LT(std::clock() - begin, 20 * CLOCKS_PER_SEC);
  ASSERT_EQ(read.size(), hosts);
  for (size_t i = 0; i < hosts; ++i)
    ASSERT_EQ(read[i], (HostSlots{fmt::format("a-host-of-a-long-name-{}", i), times}));
  EXPECT_THAT(message_of<DataError>([&] { parse_hosts(text + "another\n", "hosts"); }),
              HasSubstr("hosts:655361: a job has at most 16384 hosts"));
}

// Each blank was erased by itself, and all behind it moved.
TEST(HostsFile, OfManyBlanksIsReadSoon) {
  const std::string blanks(2'000'000, ' ');
  const std::clock_t begin = std::clock();  // of this process alone
  EXPECT_EQ(parse_hosts("a slots" + blanks + "=" + blanks + "3\nb\tslots \t= \t2 max_slots= 4\n", "hosts"),
            (std::vector<HostSlots>{{"a", 3}, {"b", 2}}));
  EXPECT_LT(std::clock() - begin, 20 * CLOCKS_PER_SEC);
}

// A list of as many hosts as its bytes can hold.
TEST(HostsFile, OfTheShortestNamesIsRead) {
  std::string text;
  for (const char letter : std::string("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._"))
    text += std::string{letter, '\n'};
  EXPECT_EQ(parse_hosts(text + text + "a", "hosts").size(), 64U);
}

}  // namespace
}  // namespace mox::cli
