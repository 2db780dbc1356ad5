// What the tests of the pre-set job on images share.
#pragma once

#include <filesystem>
#include <fstream>

#include "tests/moxing/image/images.h"
#include "tests/programs/training.h"

namespace mox {

class ImageClassifierTest : public TrainingTest {
 protected:
  void write(const std::string& name, const std::string& content) const {
    const std::filesystem::path path = std::filesystem::path(folder_) / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << content;
  }
  // Two classes that differ in brightness.
  void write_images() const {
    for (int i = 0; i < 24; ++i)
      for (const char* split : {"train", "validation"}) {
        image::Bitmap picture =
            image::picture(40, 40, static_cast<uint64_t>(i) + (split[0] == 't' ? 0 : 100));
        for (uint8_t& value : picture.pixels)
          value = static_cast<uint8_t>(i % 2 ? value / 4 : 255 - value / 4);
        write(std::string(split) + "/" + (i % 2 ? "dark/" : "light/") + std::to_string(i) + ".jpg",
              image::encode_jpeg(picture));
      }
  }
  // At a rate of 0.01 these images, whose mean is far from 0, are learnt in two steps, and momentum then
  // carries the weights to where the loss grows without bound in about half of all trainings, here as in
  // PyTorch with the same network.
  Words job(const Words& flags) const {
    return Words{"image_classifier",      "--data_url=" + folder_,     "--train_url=" + log_dir_,
                 "--model.name=cifarnet", "--model.image_size=32",     "--batch_size=8",
                 "--max_epochs=10",       "--optimizer.name=momentum", "--optimizer.learning_rate=0.001",
                 "--log_level=warning"} +
           flags;
  }
  const std::string folder_ = fresh("images");
};

}  // namespace mox
