// Part of a directory is not taken for the whole: classes or images would be missing without a word.
#include "tests/support/cut_listing.h"

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include "moxing/image_sets/image_files.h"
#include "moxing/image_sets/image_folder.h"
#include "moxing/image_sets/internal/directory.h"
#include "runtime/base/error.h"
#include "tests/support/temporary_directory.h"

namespace mox::data {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(CutListing, IsAnErrorThatNamesTheDirectory) {
  TemporaryDirectory directory;
  for (const char* name : {"set/a/0.jpg", "set/a/1.jpg", "set/b/2.jpg", "set/c/3.jpg"})
    directory.write(name, "");
  const std::string set = directory.file("set"), images = directory.file("set/a");
  for (int entries = 0; entries < 5; ++entries) {
    SCOPED_TRACE(entries);
    const CutListing cut(set, entries);
    EXPECT_THAT(message_of<IoError>([&] { internal::list_directory(set); }),
                AllOf(HasSubstr("'" + set + "' cannot be read"), HasSubstr("Input/output error")));
  }
  {
    const CutListing cut(set, 4);
    EXPECT_THAT(message_of<IoError>([&] { ImageClassificationRaw folder(set); }), HasSubstr("'" + set + "'"));
  }
  {
    const CutListing cut(images, 3);
    EXPECT_THAT(message_of<IoError>([&] { list_image_files(set); }), HasSubstr("'" + images + "'"));
  }
  EXPECT_EQ(internal::list_directory(set).directories.size(), 3U);
}

}  // namespace
}  // namespace mox::data
