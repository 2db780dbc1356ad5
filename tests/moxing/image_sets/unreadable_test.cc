// Directories and files that may not be read, and paths that lead through a file.
#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include "moxing/formats/tfrecord.h"
#include "moxing/image_sets/image_folder.h"
#include "runtime/base/error.h"
#include "runtime/data/pipeline.h"
#include "tests/moxing/image/images.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/without_privileges.h"

namespace mox::data {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
namespace fs = std::filesystem;

class Unreadable : public testing::Test {
 protected:
  Unreadable() {
    for (const char* name : {"set/daisy/0.jpg", "set/daisy/1.jpg", "set/rose/2.jpg"})
      directory_.write(name, image::encode_jpeg(image::picture(20, 16)));
    fs::permissions(directory_.path(), fs::perms(0755));
  }
  // So that the directory can be removed by any user.
  ~Unreadable() override {
    for (const char* name : {"set", "set/daisy"}) fs::permissions(directory_.file(name), fs::perms(0755));
  }

  void lock(const std::string& name) const { fs::permissions(directory_.file(name), fs::perms(0)); }

  void open() const { ImageClassificationRaw folder(directory_.file("set")); }

  // Every sample, in this thread alone.
  std::shared_ptr<BadSamples> read(OnBadSample on_bad_sample) const {
    ImageOptions options{.augmentation = {.height = 8, .width = 8}};
    options.on_bad_sample = on_bad_sample;
    options.bad_samples = std::make_shared<BadSamples>();
    const ImageClassificationRaw folder(directory_.file("set"));
    Pipeline pipeline(folder.dataset(options).batch(3), {.threads = 0});
    for (Batch batch; pipeline.next(&batch);) continue;
    return options.bad_samples;
  }

  TemporaryDirectory directory_;
};

TEST_F(Unreadable, NothingIsRefusedThatCanBeRead) {
  EXPECT_THAT(message_without_privileges<Error>([&] { read(OnBadSample::kError); }), IsEmpty());
}

TEST_F(Unreadable, DirectoriesAreNamed) {
  lock("set/daisy");
  EXPECT_THAT(message_without_privileges<IoError>([&] { open(); }),
              AllOf(HasSubstr("set/daisy"), HasSubstr("Permission denied")));
  lock("set");
  EXPECT_THAT(message_without_privileges<IoError>([&] { open(); }),
              AllOf(HasSubstr("set'"), HasSubstr("Permission denied")));
}

TEST_F(Unreadable, FilesAreNamedOrSkippedAndCounted) {
  lock("set/daisy/1.jpg");
  EXPECT_THAT(message_without_privileges<IoError>([&] { read(OnBadSample::kError); }),
              AllOf(HasSubstr("daisy/1.jpg"), HasSubstr("Permission denied")));
  EXPECT_THAT(message_without_privileges<Error>([&] {
                if (read(OnBadSample::kSkip)->count() == 1) throw DataError("one was skipped");
              }),
              HasSubstr("one was skipped"));
}

TEST_F(Unreadable, RecordsAreNamed) {
  const std::string path = directory_.file("some.tfrecord");
  TfRecordWriter writer(path);
  writer.write(as_bytes("one"));
  writer.close();
  fs::permissions(path, fs::perms(0));
  EXPECT_THAT(message_without_privileges<IoError>([&] { TfRecordFiles::open({path}); }),
              AllOf(HasSubstr("some.tfrecord"), HasSubstr("Permission denied")));
}

TEST_F(Unreadable, APathThroughAFileIsAnError) {
  EXPECT_THAT(message_of<IoError>([&] { ImageClassificationRaw folder(directory_.file("set/daisy/0.jpg")); }),
              HasSubstr("0.jpg"));
  EXPECT_THAT(message_of<Error>([&] { ImageClassificationRaw folder(directory_.file("set/daisy/0.jpg/x")); }),
              HasSubstr("0.jpg/x"));
}

}  // namespace
}  // namespace mox::data
