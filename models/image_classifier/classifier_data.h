// The data side of the pre-set job: which files, which augmentation, as the options data.*
// and augmentation.* say.
#pragma once

#include <models/zoo/image_model.h>
#include <moxing/moxing.h>

#include <string>
#include <vector>

#include "models/image_classifier/array_data.h"

namespace image_classifier {

// Whether images of that data.format go through the network's recipe (augmentation.recipe), of which scaling
// is a part; those of others are numbers already.
bool augments_images(const std::string& format);

// Height and width of the images. 0: in training that of the data (for formats of one size) or of the
// network, in evaluation as in training.
struct ImageSizes {
  int64_t train = 0, eval = 0;
};

// Training and evaluation data of one run.
class ClassifierData {
 public:
  // Reads the options and lists the data. `network` decides the recipe of the augmentation. Throws
  // InvalidArgument for options that do not fit together, DataError for training and evaluation folders whose
  // classes differ, and what the readers throw.
  ClassifierData(std::string network, ImageSizes sizes);

  // Elements {image, label}, or {image} of predict.images in PREDICT; in TRAIN shuffled and repeated without
  // end. With MixUp, batches (see batches()). Images that are read from files of images, and mixtures, are of
  // mox::preferred_image_dtype(), others float32.
  mox::Dataset dataset(mox::ModeKeys mode) const;

  // The same data with images of this height and width in both modes. `option` has asked for it:
  // InvalidArgument names it where the format's images or the network's weights are for one size.
  ClassifierData with_image_size(const std::string& option, int64_t size) const;

  int64_t num_classes() const { return num_classes_; }
  const std::vector<std::string>& label_names() const {
    return label_names_;
  }  // numbers where the format has no names
  bool mixes_up() const { return mix_up_ != 0; }
  bool has_many_labels()
      const;  // {image, labels}, float32[classes] of zeros and ones, instead of {image, label}

  // What a predictor of this run has to know (see mox::ImagePredictor).
  mox::ImageModel image_model() const;

  // Whether dataset() has batches already, in both modes.
  bool batches() const { return mixes_up(); }

 private:
  mox::Dataset samples(mox::ModeKeys mode) const;
  // Whether this run looks at predict.images, for which it needs no other data.
  bool looks_at_images() const { return !images_to_predict_.empty(); }
  bool is_mixed_up(mox::ModeKeys mode) const { return mixes_up() && mode == mox::ModeKeys::TRAIN; }
  mox::data::OnBadSample on_bad_sample(mox::ModeKeys mode) const;
  mox::data::ImageOptions image_options(mox::ModeKeys mode) const;
  ArrayFile array_file(const std::string& split) const;
  void find_classes();
  void find_classes_of_data();
  void check_other_image_size(const std::string& option, int64_t size) const;

  std::string images_to_predict_;
  std::string network_, format_, directory_, train_split_, eval_split_;
  int64_t image_size_, eval_image_size_ = 0, num_classes_ = 0;
  double mix_up_ = 0;
  std::vector<std::string> label_names_;
};

}  // namespace image_classifier
