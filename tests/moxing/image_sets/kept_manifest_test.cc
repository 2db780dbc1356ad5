// The manifest of a cache: what it does not vouch for is not read.
#include "moxing/image_sets/internal/kept_manifest.h"

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <span>

#include "moxing/formats/tfrecord.h"

namespace mox::data::internal {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr uint64_t kFileBytes = 1000;

KeptEntries two_entries() {
  KeptEntries entries(3);
  entries[0] = {.offset = 0, .bytes = 60, .width = 5, .height = 4, .label_bytes = 4, .checksum = 7};
  entries[2] = {.offset = 64, .bytes = 33, .width = 0, .height = 0, .label_bytes = 4, .checksum = 8};
  return entries;
}

// Whether anything is read, and why not.
std::string problem_of(const std::string& text, size_t images = 3) {
  std::string problem;
  const KeptEntries entries = parse_manifest(text, "these", images, kFileBytes, &problem);
  EXPECT_EQ(entries.size(), images);
  for (const auto& entry : entries) EXPECT_EQ(entry.has_value() && !problem.empty(), false);
  return problem;
}

TEST(KeptManifest, ReadsWhatItWrote) {
  std::string problem;
  const KeptEntries entries =
      parse_manifest(manifest_text("these", two_entries()), "these", 3, kFileBytes, &problem);
  EXPECT_THAT(problem, IsEmpty());
  EXPECT_FALSE(entries[1]);
  ASSERT_TRUE(entries[0] && entries[2]);
  EXPECT_EQ(entries[0]->height, 4);
  EXPECT_EQ(entries[2]->end(), 101u);
}

TEST(KeptManifest, RefusesDamageAndOtherImages) {
  const std::string text = manifest_text("these", two_entries());
  for (size_t i = 0; i < text.size(); ++i) {
    std::string damaged = text;
    damaged[i] ^= 1;
    EXPECT_THAT(problem_of(damaged), HasSubstr("damaged")) << i;
    EXPECT_THAT(problem_of(text.substr(0, i)), HasSubstr("damaged")) << i;
  }
  EXPECT_THAT(problem_of(manifest_text("those", two_entries())),
              HasSubstr("other images (those; these are these)"));
}

// Version 2 had four bytes a pixel, and 3 images on their side whose orientation follows their pixels.
TEST(KeptManifest, RefusesAnotherVersion) {
  for (const std::string version : {"version 2", "version 3"}) {
    std::string text = manifest_text("these", two_entries());
    text.replace(text.find("version "), version.size(), version);
    text.erase(text.find("checksum"));
    const uint32_t checksum = crc32c(std::as_bytes(std::span(text.data(), text.size())));
    EXPECT_THAT(problem_of(text + "checksum " + std::to_string(checksum) + "\n"), HasSubstr(version));
  }
}

// A checksum can be made to fit by whoever writes the file.
TEST(KeptManifest, RefusesEntriesThatCannotBe) {
  const KeptEntry good = *two_entries()[0];
  const auto changed = [&](auto&& change) {
    KeptEntries entries(3);
    entries[0] = good;
    change(*entries[0]);
    return problem_of(manifest_text("these", entries));
  };
  EXPECT_THAT(changed([](KeptEntry&) {}), IsEmpty());
  for (const auto& problem : {
           changed([](KeptEntry& entry) { entry.offset = 937; }),
           changed([](KeptEntry& entry) { entry.offset = UINT64_MAX - 60; }),
           changed([](KeptEntry& entry) { entry.bytes = uint64_t{1} << 60; }),
           changed([](KeptEntry& entry) { entry.width = 65535, entry.height = 65535; }),
           changed([](KeptEntry& entry) { entry.width = -5, entry.height = -4; }),
           changed([](KeptEntry& entry) { entry.width = 0; }),
           changed([](KeptEntry& entry) { entry.label_bytes = UINT32_MAX; }),
       })
    EXPECT_THAT(problem, HasSubstr("does not agree"));
  EXPECT_THAT(problem_of(manifest_text("these", two_entries()), 2), HasSubstr("does not agree"));
}

}  // namespace
}  // namespace mox::data::internal
