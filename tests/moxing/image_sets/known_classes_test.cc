// Labels keep their meaning: one list of classes decides, whatever the other parts of a set lack.
#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <filesystem>

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

}  // namespace
}  // namespace mox::data
