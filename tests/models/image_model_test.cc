// The trained classifier at hand: what its run would say, to the bit.
#include "models/zoo/image_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <models/zoo/zoo.h>

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "runtime/base/file.h"
#include "tests/moxing/image/images.h"
#include "tests/support/temporary_directory.h"

namespace mox {
namespace {

using ::testing::HasSubstr;

class ImageModelTest : public ::testing::Test {
 protected:
  static ModelSpec model_fn(const Inputs& in, ModeKeys mode) {
    const auto output = get_model_fn("cifarnet", {.num_classes = 3, .image_size = 32})(in[0], mode);
    if (mode == ModeKeys::PREDICT)
      return {.output_info = {{"probabilities", output.end_point("predictions")}}};
    const Tensor loss = reduce_mean(square(output.logits - 1.0f));
    return {.loss = loss, .log_info = {{"loss", loss}}};
  }
  void train() const {
    run_or_throw({.input_fn =
                      [](ModeKeys) {
                        Array x(DType::kFloat32, {8, 3, 32, 32});
                        for (size_t i = 0; i < x.values<float>().size(); ++i)
                          x.values<float>()[i] = static_cast<float>(i % 17) / 17.0F;
                        return Dataset::from_arrays({x}).repeat();
                      },
                  .model_fn = model_fn,
                  .optimizer_fn = get_optimizer_fn("sgd", {.learning_rate = 0.01}),
                  .batch_size = 8,
                  .log_dir = log_dir_,
                  .max_number_of_steps = 2,
                  .log_every_n_steps = 0,
                  .hooks = {image_model_hook(model_)}});
  }

  const ScopedConfiguration configuration_{
      std::vector<std::string>{"--threads=1", "--num_devices=1", "--log_level=error"}};
  TemporaryDirectory directory_;
  const std::string log_dir_ = directory_.file("run");
  ImageModel model_{
      .network = "cifarnet", .image_size = 32, .recipe = "cifarnet", .label_names = {"ant", "bee", "wasp"}};
};

TEST_F(ImageModelTest, SaysWhatARunOverTheFilesSays) {
  train();
  std::vector<std::string> paths, encoded;
  for (int i = 0; i < 3; ++i) {
    encoded.push_back(image::encode_jpeg(image::picture(50 + i, 40, static_cast<uint64_t>(i))));
    paths.push_back(directory_.write("images/" + std::to_string(i) + ".jpg", encoded.back()));
  }
  Array expected;
  run_or_throw({.input_fn =
                    [&](ModeKeys) {
                      return data::image_files(data::list_image_files(directory_.file("images")),
                                               {.augmentation = preprocessing_of(model_)});
                    },
                .model_fn = model_fn,
                .output_fn =
                    [&](std::span<const OutputBatch> batches) {
                      expected = batches[0].array("probabilities");
                      EXPECT_EQ(batches[0].sample_names, paths);
                    },
                .run_mode = ModeKeys::PREDICT,
                .batch_size = 3,
                .log_dir = log_dir_});
  const ImagePredictor predictor(log_dir_);
  const Array actual = predictor.probabilities(encoded);
  ASSERT_EQ(actual.type(), expected.type());
  EXPECT_EQ(std::memcmp(actual.data(), expected.data(), actual.bytes()), 0);

  const auto best = predictor.best(encoded[0], 2);
  ASSERT_EQ(best.size(), 2U);
  EXPECT_GE(best[0].second, best[1].second);
  EXPECT_EQ(predictor.best(encoded[0], 9).size(), 3U);
  EXPECT_EQ(ImagePredictor(log_dir_ + "/checkpoint-2").model().network, "cifarnet");
}

TEST_F(ImageModelTest, KeepsWhatDecidesTheLastBits) {
  const ImageModel usual = model_;
  model_.conv_algorithm = "direct";
  model_.conv_error = 1e-6;
  train();
  const ImageModel kept = read_image_model(log_dir_);
  EXPECT_EQ(kept.conv_algorithm, "direct");
  EXPECT_EQ(kept.conv_error, 1e-6);
  const auto bytes_of = [&](const ImagePredictor& predictor) {
    std::vector<std::string> encoded;
    for (uint64_t i = 0; i < 5; ++i) encoded.push_back(image::encode_jpeg(image::picture(40, 40, i)));
    const Array answer = predictor.probabilities(encoded);
    return std::string(reinterpret_cast<const char*>(answer.data()), answer.bytes());
  };
  EXPECT_NE(bytes_of(ImagePredictor(log_dir_)), bytes_of(ImagePredictor(log_dir_, usual)));

  // What older programs wrote says nothing of it.
  const std::string file = log_dir_ + "/image_model.json";
  auto json = nlohmann::json::parse(read_file(file));
  json.erase("conv_algorithm");
  json.erase("conv_error");
  write_file_atomically(file, json.dump());
  EXPECT_EQ(read_image_model(log_dir_).conv_algorithm, "auto");
  EXPECT_EQ(read_image_model(log_dir_).conv_error, 0.01);
}

// Programs of before took every MobileNet for a LeNet: it looks at images as it has learnt to.
TEST_F(ImageModelTest, KeepsThePreprocessingOfAnOlderRun) {
  model_.recipe = "mobilenet_v2";
  train();
  EXPECT_EQ(read_image_model(log_dir_).recipe, "mobilenet_v2");
  EXPECT_EQ(preprocessing_of(read_image_model(log_dir_)).crop, image::Crop::kCentre);
  const std::string file = log_dir_ + "/image_model.json";
  auto json = nlohmann::json::parse(read_file(file));
  json.erase("recipes");
  write_file_atomically(file, json.dump());
  const image::Augmentation older = preprocessing_of(read_image_model(log_dir_));
  EXPECT_EQ(older.crop, image::Crop::kNone);
  EXPECT_EQ(older.mean[0], 0);
  EXPECT_EQ(older.channels, 3);
}

TEST_F(ImageModelTest, SaysWhatIsNoImageAndNoModel) {
  train();
  const ImagePredictor predictor(log_dir_);
  EXPECT_THAT(message_of<DataError>([&] { predictor.probabilities(std::vector<std::string>{"no picture"}); }),
              HasSubstr("image 0"));
  EXPECT_THROW(predictor.probabilities({}), InvalidArgument);
  EXPECT_THAT(message_of<NotFound>([&] { ImagePredictor(directory_.path()); }),
              HasSubstr("image_model.json"));
  const std::string file = log_dir_ + "/image_model.json";
  const std::string written = read_file(file);
  for (const char* content : {"", "{}", "[1]", "{\"network\": 7}"}) {
    write_file_atomically(file, content);
    EXPECT_THROW(ImagePredictor{log_dir_}, DataError) << content;
  }
  // Numbers that no image's size is, each of which would become one.
  auto json = nlohmann::json::parse(written);
  for (const auto& size : {nlohmann::json(1e300), nlohmann::json(28.5), nlohmann::json(-28),
                           nlohmann::json(int64_t{1} << 40), nlohmann::json("28")}) {
    json["image_size"] = size;
    write_file_atomically(file, json.dump());
    EXPECT_THAT(message_of<DataError>([&] { read_image_model(log_dir_); }),
                testing::AllOf(HasSubstr(file), HasSubstr("image_size")))
        << size;
  }
}

}  // namespace
}  // namespace mox
