// Labels keep their meaning: one list of classes decides, whatever the other parts of a set lack.
#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "moxing/image_sets/image_files.h"
#include "moxing/image_sets/image_folder.h"
#include "moxing/image_sets/image_records.h"
#include "runtime/base/error.h"
#include "runtime/data/pipeline.h"
#include "tests/moxing/image/images.h"
#include "tests/support/temporary_directory.h"

namespace mox::data {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const std::vector<std::string> kNames{"ant", "bee", "cat"};

std::string small_jpeg() { return image::encode_jpeg(image::picture(8, 8, 1)); }

TEST(KnownClasses, ALackingClassDoesNotShiftTheOthers) {
  TemporaryDirectory directory;
  directory.write("v/ant/1.jpg", "");
  directory.write("v/cat/1.jpg", "");
  directory.write("v/labels.txt", "0: cat\n1: ant\n2: bee\n");  // another order
  const ImageClassificationRaw folder(directory.file("v"), kNames);
  ASSERT_EQ(folder.files().size(), 2U);
  EXPECT_EQ(folder.files()[0].label, 0);
  EXPECT_EQ(folder.files()[1].label, 2);
  directory.write("v/zebra/1.jpg", "");
  EXPECT_THAT(message_of<DataError>([&] { ImageClassificationRaw(directory.file("v"), kNames); }),
              AllOf(HasSubstr("zebra"), HasSubstr("ant, bee, cat")));
}

TEST(KnownClasses, LabelsThatNoImageHasDoNotShiftTheOthers) {
  TemporaryDirectory directory;
  directory.write("v/images/1.jpg", small_jpeg());
  directory.write("v/labels/1.jpg.txt", "cat\n");
  const auto labels = [&] {
    const MultilabelClassificationRaw folder(directory.file("v"), kNames);
    EXPECT_EQ(folder.label_names(), kNames);
    ImageOptions options;
    options.augmentation.height = options.augmentation.width = 8;
    Pipeline pipeline(folder.dataset(options).batch(1), {});
    Batch batch;
    EXPECT_TRUE(pipeline.next(&batch));
    const auto values = std::as_const(batch.components[1]).values<float>();
    return std::vector<float>(values.begin(), values.end());
  };
  testing::internal::CaptureStderr();
  EXPECT_EQ(labels(), (std::vector<float>{0, 0, 1}));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("no images of 2 of the 3 classes: ant, bee"));
  directory.write("v/labels.txt", "0: cat\n1: ant\n");  // another order
  EXPECT_EQ(labels(), (std::vector<float>{0, 0, 1}));
  directory.write("v/labels.txt", "0: cat\n1: dog\n");
  EXPECT_THAT(message_of<DataError>([&] { labels(); }),
              AllOf(HasSubstr("classes that the run does not have: dog"), HasSubstr("ant, bee, cat")));
  std::filesystem::remove(directory.file("v/labels.txt"));
  directory.write("v/labels/1.jpg.txt", "cat\ndog\n");
  EXPECT_THAT(message_of<DataError>([&] { labels(); }),
              AllOf(HasSubstr("1.jpg.txt', line 2: the label 'dog'"), HasSubstr("ant, bee, cat")));
}

TEST(KnownClasses, AListOfWindowsIsRead) {
  EXPECT_EQ(parse_label_names("\xef\xbb\xbf"
                              "0: ant\r\n1: bee\r\n2: cat\r\n",
                              "labels.txt"),
            kNames);
}

TEST(KnownClasses, ASecondConversionIsNumberedByTheFirst) {
  TemporaryDirectory directory;
  for (const char* name :
       {"t/ant/1.jpg", "t/bee/1.jpg", "t/cat/1.jpg", "v/ant/1.jpg", "v/cat/1.jpg", "w/dog/1.jpg"})
    directory.write(name, small_jpeg());
  const auto convert = [&](const std::string& part) {
    convert_image_folder(ImageClassificationRaw(directory.file(part)), directory.file("r/" + part), {});
  };
  convert("t");
  convert("v");
  EXPECT_EQ(read_label_names(directory.file("r/labels.txt")), kNames);
  EXPECT_THAT(message_of<DataError>([&] { convert("w"); }),
              AllOf(HasSubstr("ant, bee, cat"), HasSubstr("dog")));
  EXPECT_EQ(read_label_names(directory.file("r/labels.txt")), kNames);
  EXPECT_FALSE(std::filesystem::exists(directory.file("r/w-00000-of-00001")));
}

// Shards of another conversion, copied beside those of the first.
TEST(KnownClasses, RecordsThatAnotherListHasNumberedAreRefused) {
  TemporaryDirectory directory;
  for (const char* name :
       {"t/ant/1.jpg", "t/bee/1.jpg", "t/cat/1.jpg", "v/bee/1.jpg", "v/cat/1.jpg", "v/zebra/1.jpg"})
    directory.write(name, small_jpeg());
  convert_image_folder(ImageClassificationRaw(directory.file("t")), directory.file("r/t"), {});
  convert_image_folder(ImageClassificationRaw(directory.file("v")), directory.file("q/v"), {});
  std::filesystem::copy(directory.file("q/v-00000-of-00001"), directory.file("r/v-00000-of-00001"));
  const auto said_of = [&](const std::string& files, ImageRecordOptions options = {}) {
    options.image.augmentation.height = options.image.augmentation.width = 8;
    testing::internal::CaptureStderr();
    const std::string error = message_of<FailedPrecondition>([&] {
      for (int pass = 0; pass < 2; ++pass) {
        Pipeline pipeline(image_classification_tfrecord(directory.file(files), options).batch(1), {});
        for (Batch batch; pipeline.next(&batch);) continue;
      }
      throw FailedPrecondition("none");
    });
    return error + testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(said_of("r/t-*"), "none");
  EXPECT_EQ(said_of("q/v-*"), "none");
  for (const OnBadSample on_bad_sample : {OnBadSample::kError, OnBadSample::kSkip, OnBadSample::kLeaveOut}) {
    ImageRecordOptions options;
    options.image.on_bad_sample = on_bad_sample;
    EXPECT_THAT(said_of("r/v-*", options), AllOf(HasSubstr("r/v-00000-of-00001"),
                                                 HasSubstr("numbered by another"), HasSubstr("labels.txt")));
  }
  EXPECT_THAT(said_of("q/v-*", {.label_names = kNames}), HasSubstr("numbered by another"));
  EXPECT_THAT(said_of("r/v-*", {.num_classes = 3}), HasSubstr("numbered by another"));
  EXPECT_EQ(said_of("r/v-*", {.num_classes = 7}), "none") << "the list has not so many";
  EXPECT_EQ(said_of("r/v-*", {.label_names = {"0", "1", "2"}}), "none");
  EXPECT_THROW(
      image_classification_tfrecord(directory.file("r/t-*"), {.num_classes = 2, .label_names = kNames}),
      InvalidArgument);
  // Words beside other names, as ImageNet has them, cannot be compared.
  const std::string words = said_of("r/t-*", {.label_names = {"n01", "n02", "n03"}});
  EXPECT_THAT(words, AllOf(HasSubstr("none"), HasSubstr("does not have"), HasSubstr("'n0")));
  EXPECT_EQ(std::ranges::count(words, '\n'), 2) << "a warning for each data set: " << words;
}

// As editors and spreadsheets write them.
TEST(MultilabelFolder, MarksAndBlanksMakeNoOtherClass) {
  TemporaryDirectory directory;
  const std::string mark = "\xef\xbb\xbf";
  for (const char* name : {"1.jpg", "2.jpg", "3.jpg"})
    directory.write(std::string("v/images/") + name, small_jpeg());
  directory.write("v/labels/1.jpg.txt", mark + "ant\r\nsmall\r\n");
  directory.write("v/labels/2.jpg.txt", "small \n\tant\n  \n");
  directory.write("v/labels/3.jpg.txt", mark);
  testing::internal::CaptureStderr();
  EXPECT_EQ(MultilabelClassificationRaw(directory.file("v")).label_names(),
            (std::vector<std::string>{"ant", "small"}));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(MultilabelClassificationRaw(directory.file("v"), {"ant", "small"}).size(), 3);
  directory.write("v/labels/3.jpg.txt", "Ant\ngreen  ant\nGreen ant\n");
  testing::internal::CaptureStderr();
  EXPECT_EQ(MultilabelClassificationRaw(directory.file("v")).label_names().size(), 5U);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("'Ant' and 'ant' differ only in case or spaces (as 1 more do)"),
                    HasSubstr("write them alike")));
}

TEST(ImageFolder, NamesThatAPersonWouldTakeForOneAreSaid) {
  TemporaryDirectory directory;
  for (const char* name : {"t/ant/1.jpg", "t/ant /1.jpg", "t/bee/1.jpg"}) directory.write(name, small_jpeg());
  testing::internal::CaptureStderr();
  EXPECT_EQ(ImageClassificationRaw(directory.file("t")).label_names().size(), 3U);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("'ant' and 'ant ' differ only in case or spaces"));
}

TEST(ImageRecords, AConversionSaysWhatToDoWithADamagedImage) {
  TemporaryDirectory directory;
  directory.write("t/ant/1.jpg", small_jpeg().substr(0, 200));
  EXPECT_THAT(message_of<DataError>([&] {
                convert_image_folder(ImageClassificationRaw(directory.file("t")), directory.file("r/t"), {});
              }),
              AllOf(HasSubstr("t/ant/1.jpg"), HasSubstr("take it out of the folder")));
}

TEST(ImageFolder, ReadsADirectoryOfImagesInEachClass) {
  TemporaryDirectory directory;
  directory.write("s/a/images/1.jpg", "");
  directory.write("s/b/2.jpg", "");
  const ImageClassificationRaw folder(directory.file("s"));
  ASSERT_EQ(folder.files().size(), 2U);
  EXPECT_EQ(folder.files()[0].path, "a/images/1.jpg");
  directory.write("s/c/deep/3.jpg", "");
  EXPECT_THAT(message_of<DataError>([&] { ImageClassificationRaw(directory.file("s")); }),
              AllOf(HasSubstr("'c'"), HasSubstr("deep")));
  directory.write("t/a/1.webp", "");
  EXPECT_THAT(message_of<DataError>([&] { ImageClassificationRaw(directory.file("t")); }),
              HasSubstr("1.webp"));
}

// Most of class 'a' would go unlearnt because of what its files are called, or of where they lie.
TEST(ImageFolder, ImagesThatAreNotReadAreNamedByClass) {
  TemporaryDirectory directory;
  for (const char* name : {"s/a/1.jpg", "s/a/2.jpg", "s/b/1.jpg", "s/b/2.png"})
    directory.write(name, small_jpeg());
  directory.write("s/a/notes.txt", "");
  directory.write("s/a/@eaDir/small.jpg", "");  // of a storage server
  std::filesystem::create_directory_symlink(directory.file("s/a"), directory.file("s/a/itself"));
  ImageOptions options;
  options.augmentation.height = options.augmentation.width = 8;
  const auto said = [&] {
    testing::internal::CaptureStderr();
    const std::string error =
        message_of<DataError>([&] { ImageClassificationRaw(directory.file("s")).dataset(options); });
    return error + testing::internal::GetCapturedStderr();
  };
  const auto warned = [&] {
    testing::internal::CaptureStderr();
    ImageClassificationRaw(directory.file("s")).dataset(options);
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(warned(), AllOf(HasSubstr("3 entries are not called"), Not(HasSubstr("of other kinds"))));
  directory.write("s/a/3.WebP", "");
  directory.write("s/a/4.heic", "");
  EXPECT_THAT(warned(),
              AllOf(HasSubstr("of class 'a', 2 of 4 images are left out: 2 of other kinds (a/3.WebP"),
                    HasSubstr("mogrify -auto-orient -format png '" + directory.file("s") + "/a'/*.WebP"),
                    HasSubstr("3 entries are not called")));
  directory.write("s/a/more/5.jpg", "");
  EXPECT_THAT(said(),
              AllOf(HasSubstr("3 of 5 images are left out"), HasSubstr("1 in directories below (a/more)"),
                    HasSubstr("more than the share 0.5"), HasSubstr("data.max_bad_share"),
                    HasSubstr("mv '" + directory.file("s") + "/a/more'/* '" + directory.file("s") + "/a'/")));
  options.max_bad_share = 1;
  EXPECT_THAT(warned(), HasSubstr("3 of 5 images"));
  EXPECT_THAT(message_of<DataError>([&] {
                convert_image_folder(ImageClassificationRaw(directory.file("s")), directory.file("r/s"), {});
              }),
              AllOf(HasSubstr("of class 'a'"), HasSubstr("leaves no image out")));
  // As the command leaves them.
  std::filesystem::remove_all(directory.file("s/a/more"));
  for (const char* name : {"s/a/3.png", "s/a/4.png"}) directory.write(name, small_jpeg());
  EXPECT_THAT(warned(), Not(HasSubstr("of other kinds")));
  convert_image_folder(ImageClassificationRaw(directory.file("s")), directory.file("r/s"), {});
}

TEST(ImageFolder, ImagesOfOtherKindsWithoutLabelsAreNamed) {
  TemporaryDirectory directory;
  directory.write("v/images/1.jpg", small_jpeg());
  directory.write("v/labels/1.jpg.txt", "cat\n");
  directory.write("v/images/2.webp", "");
  testing::internal::CaptureStderr();
  const MultilabelClassificationRaw folder(directory.file("v"));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("of the set, 1 of 2 images are left out"));
  testing::internal::CaptureStderr();
  EXPECT_EQ(list_image_files(directory.file("v/images")).size(), 1U);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("images of other kinds get no answer, 1 in all"), HasSubstr("2.webp"),
                    HasSubstr("mogrify -auto-orient -format png FILE")));
}

}  // namespace
}  // namespace mox::data
