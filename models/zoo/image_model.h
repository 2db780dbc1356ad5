// What a trained classifier of images takes and answers, kept beside its checkpoints.
#pragma once

#include <moxing/moxing.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace mox {

// The file image_model.json of a log_dir, as image_classifier writes it.
struct ImageModel {
  std::string network;       // of the zoo
  int64_t image_size = 0;    // height and width, in evaluation and prediction
  std::string recipe;        // the network whose usual preprocessing it has (get_data_augmentation_fn)
  bool fast_decode = false;  // see image::Augmentation
  bool many_labels = false;  // each class is a question of its own
  std::string array_format =
      {};  // of images that were numbers already (npz, csv, mnist): no recipe is theirs
  std::string precision = "fp32";  // of the run, as the two below it
  std::string conv_algorithm = "auto";
  double conv_error = 0.01;
  std::vector<std::string> label_names = {};
};

// Writes it when a training begins. Of a job rank 0 does so; a run without a log_dir keeps none.
std::shared_ptr<Hook> image_model_hook(ImageModel model);

// Of a log_dir, or of one of its checkpoints. Throws NotFound, DataError.
ImageModel read_image_model(const std::string& run);

// How an image becomes what the network takes. Throws InvalidArgument for a network that was not trained on
// files of images (array_format).
image::Augmentation preprocessing_of(const ImageModel& model);

// The trained classifier at hand, from encoded images to probabilities, with the preprocessing of its run:
//
//   mox::ImagePredictor predictor("runs/flowers");
//   for (const auto& [name, probability] : predictor.best(bytes_of_jpeg, 3)) ...
//
// Threads: all functions may be called from several threads at once.
class ImagePredictor {
 public:
  // `run`: a log_dir of image_classifier, or one of its checkpoints. `threads` compute one call. Throws as
  // read_image_model, preprocessing_of and Predictor do.
  explicit ImagePredictor(const std::string& run, int threads = 1);
  // Another checkpoint (of imported weights, say) as that model.
  ImagePredictor(const std::string& checkpoint, ImageModel model, int threads = 1);
  ~ImagePredictor();
  ImagePredictor(ImagePredictor&&) noexcept;
  ImagePredictor& operator=(ImagePredictor&&) noexcept;

  const ImageModel& model() const;
  const Predictor& predictor() const;

  // The probabilities of the classes: float32 [images, classes], of JPEG or PNG images in memory, computed as
  // one batch. Throws DataError for bytes that are no such image, naming it by its place ("image 0"), and
  // InvalidArgument for none.
  Array probabilities(std::span<const std::string> encoded) const;

  // The likeliest classes of one image, at most `count`, the likeliest first.
  std::vector<std::pair<std::string, float>> best(const std::string& encoded, size_t count) const;

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace mox
