// Digests of many texts at a time, against OpenSSL's.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "moxing/file/md5/md5_lanes.h"
#include "moxing/file/md5/md5_queue.h"
#include "moxing/file/s3/digest.h"

namespace mox::file {
namespace {

std::string text_of(size_t size, uint32_t seed) {
  std::mt19937 random(seed);
  std::string text(size, '\0');
  std::ranges::generate(text, [&] { return static_cast<char>(random()); });
  return text;
}

void expect_digests(const std::vector<std::string>& texts) {
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  std::vector<Md5Digest> digests(texts.size());
  md5_of_each(views, digests);
  for (size_t i = 0; i < texts.size(); ++i)
    EXPECT_EQ(s3::hex({digests[i].data(), digests[i].size()}), s3::hex(s3::md5(texts[i])))
        << "text " << i << " of " << texts.size() << ", " << texts[i].size() << " bytes";
}

TEST(Md5Lanes, EveryLengthAroundTheBlocks) {
  std::vector<std::string> texts;
  for (size_t size = 0; size <= 3 * 64 + 1; ++size) texts.push_back(text_of(size, size));
  expect_digests(texts);
}

TEST(Md5Lanes, AnyNumberOfTextsOfAnyLengths) {
  for (size_t count = 0; count <= 2 * kMd5Lanes + 1; ++count) {
    std::vector<std::string> texts;
    for (size_t i = 0; i < count; ++i) texts.push_back(text_of((count * 7919 + i * 104729) % 5000, i));
    expect_digests(texts);
  }
}

TEST(Md5Lanes, OneLongTextAmongShortOnes) {
  for (size_t place = 0; place < kMd5Lanes; ++place) {
    std::vector<std::string> texts(kMd5Lanes, "short");
    texts[place] = text_of(1'000'003, place);
    expect_digests(texts);
  }
}

// RFC 1321, A.5.
TEST(Md5Lanes, ThePublishedExamples) {
  const std::vector<std::string_view> texts = {"", "a", "message digest"};
  std::vector<Md5Digest> digests(texts.size());
  md5_of_each(texts, digests);
  EXPECT_EQ(s3::hex({digests[0].data(), 16}), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(s3::hex({digests[1].data(), 16}), "0cc175b9c0f1b6a831c399e269772661");
  EXPECT_EQ(s3::hex({digests[2].data(), 16}), "f96b697d7cb7938d525a2f31aaf161d0");
}

// All texts are made before: the threads do nothing but ask, and meet in the queue.
TEST(Md5Queue, GivesEachThreadItsOwn) {
  constexpr size_t kThreads = 40, kTexts = 30;  // more threads than a batch has lanes
  const std::string all = text_of(300'000, 1);
  const auto text = [&](size_t thread, size_t i) {
    return std::string_view(all).substr(97 * thread + i, i % 5 ? 70'000 + 5'000 * i : 100);
  };
  std::vector<std::vector<std::string>> expected(kThreads), got(kThreads, std::vector<std::string>(kTexts));
  for (size_t thread = 0; thread < kThreads; ++thread)
    for (size_t i = 0; i < kTexts; ++i) expected[thread].push_back(s3::md5(text(thread, i)));
  for (int round = 0; round < 10; ++round) {
    Md5Queue queue(8);
    std::vector<std::thread> threads;
    for (size_t thread = 0; thread < kThreads; ++thread)
      threads.emplace_back([&, thread] {
        for (size_t i = 0; i < kTexts; ++i) got[thread][i] = queue.digest(text(thread, i));
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_TRUE(got == expected);
  }
}

// How often this thread has read from a file.
int64_t reads_until_now() {
  std::ifstream file("/proc/thread-self/io");
  std::string word;
  while (file >> word)
    if (word == "syscr:") {
      int64_t count = 0;
      file >> count;
      return count;
    }
  return -1;
}

// Control groups are looked up in files, which takes as long as a small file's copy.
TEST(Md5Queue, AsksForTheCoresOfNoThreadAlone) {
  if (reads_until_now() < 0) GTEST_SKIP() << "needs /proc/thread-self/io";
  const std::string text = text_of(100'000, 1),
                    expected = s3::md5(text);  // OpenSSL reads a file at its first
  const int64_t before = reads_until_now(), between = reads_until_now();
  EXPECT_EQ(Md5Queue().digest(text), expected);
  EXPECT_EQ(reads_until_now() - between, between - before);
}

}  // namespace
}  // namespace mox::file
