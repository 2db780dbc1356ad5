#include "models/image_classifier/classifier_data.h"

#include <models/zoo/zoo.h>

#include <algorithm>
#include <filesystem>

#include "models/image_classifier/answers.h"
#include "models/image_classifier/data_options.h"
#include "models/image_classifier/temporary_flags.h"
#include "moxing/prediction/predictions_file.h"
#include "runtime/base/file.h"

namespace image_classifier {
namespace {

namespace fs = std::filesystem;

bool is_cifar(const std::string& format) { return format == "cifar10" || format == "cifar100"; }
bool is_mnist(const std::string& format) { return format == "mnist"; }
bool has_files_of_images(const std::string& format) {
  return format == "image_folder" || format == "multilabel_folder" || format == "tfrecord";
}
bool is_array_file(const std::string& format) { return format == "npz" || format == "csv"; }

std::string inside(const std::string& directory, const std::string& name) {
  return (fs::path(directory) / name).string();
}

std::vector<std::string> numbers(int64_t count) {
  std::vector<std::string> names;
  for (int64_t i = 0; i < count; ++i) names.push_back(std::to_string(i));
  return names;
}

// The folder of a split, where it is there; else what is there instead, and the flag that names another.
std::string folder_of(const std::string& directory, const std::string& split, const std::string& flag) {
  const fs::path folder = inside(directory, split);
  if (mox::file::is_remote(directory)) return folder.string();
  if (mox::is_there_as_directory(folder) || !mox::is_there_as_directory(directory)) return folder.string();
  std::vector<std::string> found;
  std::error_code unreadable;
  for (auto entry = fs::directory_iterator(directory, unreadable);
       !unreadable && entry != fs::directory_iterator(); entry.increment(unreadable))
    found.push_back(entry->path().filename().string() +
                    (mox::is_there_as_directory(entry->path()) ? "/" : ""));
  std::sort(found.begin(), found.end());
  constexpr size_t kShown = 6;
  std::string names;
  for (size_t i = 0; i < std::min(found.size(), kShown); ++i) names += (i > 0 ? ", " : "") + found[i];
  if (found.size() > kShown) names += " and " + std::to_string(found.size() - kShown) + " more";
  throw mox::NotFound("there is no '" + folder.string() +
                      "': data_url must hold the splits, as SPLIT/CLASS/IMAGE (" + mox::flag("data.format") +
                      "), and '" + directory + "' holds " + (found.empty() ? "nothing" : names) + ". " +
                      flag + " is '" + split + "'; it names the split, and data_url the directory above");
}

}  // namespace

bool augments_images(const std::string& format) { return has_files_of_images(format) || is_cifar(format); }

ClassifierData::ClassifierData(std::string network, ImageSizes sizes)
    : images_to_predict_(mox::flag("run_mode") == "predict" ? mox::flag("predict.images") : ""),
      network_(std::move(network)),
      format_(mox::flag("data.format")),
      directory_(mox::flag("data_url")),
      train_split_(mox::flag("data.train_split")),
      eval_split_(mox::flag("data.eval_split")),
      image_size_(sizes.train),
      mix_up_(mox::get_flag<double>("augmentation.mix_up")) {
  if (!has_files_of_images(format_) && !is_cifar(format_) && !is_mnist(format_) && !is_array_file(format_))
    throw mox::InvalidArgument(
        "data.format is '" + format_ +
        "'; it must be image_folder, multilabel_folder, tfrecord, npz, csv, cifar10, cifar100 or mnist");
  require_effect(format_);
  require_recipe(mox::flag("augmentation.recipe"));
  if (train_split_.empty() && (has_files_of_images(format_) || is_array_file(format_)))
    throw mox::InvalidArgument(
        "data.train_split is empty: expected the name of the part of data_url that is trained on, such as "
        "train; leave the option out for that, or write . where the classes' folders lie in data_url itself");
  if (!looks_at_images() && !mox::flag("predict.images").empty() &&
      mox::option_origin("predict.images") == "command line")
    throw mox::ConfigError("predict.images is '" + mox::flag("predict.images") + "', but run_mode is '" +
                           mox::flag("run_mode") + "', which does not look at them. Set run_mode to predict");
  if (directory_.empty() && !looks_at_images())
    throw mox::InvalidArgument("data_url is not set: it says where the images are");
  // Those formats are read whole.
  if (is_cifar(format_) || is_mnist(format_) || format_ == "npz")
    if (mox::file::is_remote(directory_)) directory_ = mox::local_data_url();
  if (eval_split_.empty()) eval_split_ = has_files_of_images(format_) ? "validation" : "test";
  if (is_cifar(format_) && image_size_ == 0) image_size_ = 32;
  if ((has_files_of_images(format_) || format_ == "csv") && image_size_ == 0)
    image_size_ = mox::get_model_meta(network_).image_size;
  eval_image_size_ = sizes.eval == 0 ? image_size_ : sizes.eval;
  check_other_image_size("model.eval_image_size", eval_image_size_);
  if (has_many_labels() && mixes_up())
    throw mox::InvalidArgument(
        "augmentation.mix_up mixes classes: it cannot go with data.format multilabel_folder");
  find_classes();
  if (num_classes_ < 2 && !has_many_labels())
    throw mox::InvalidArgument(
        "'" + (looks_at_images() ? mox::log_dir_of_run() : directory_) + "' has " +
        (label_names_.empty() ? "no classes" : "one class alone, '" + label_names_.front() + "'") +
        ": there is nothing to tell it from, and every answer would be right. Expected are at least two: a "
        "directory for each below the split (image_folder), or labels 0, 1, ... (data.num_classes)");
}

void ClassifierData::check_other_image_size(const std::string& option, int64_t size) const {
  if (size == image_size_) return;
  if (!augments_images(format_))
    throw mox::InvalidArgument(option + " is " + std::to_string(size) + ", but images of data.format " +
                               format_ + " are not resized: it must be 0");
  if (!mox::get_model_meta(network_).takes_any_image_size)
    throw mox::InvalidArgument(option + " is " + std::to_string(size) + ", but " + network_ +
                               " has weights for one size of images, here " + std::to_string(image_size_) +
                               ": it must be 0");
}

ClassifierData ClassifierData::with_image_size(const std::string& option, int64_t size) const {
  check_other_image_size(option, size);
  ClassifierData other = *this;
  other.image_size_ = other.eval_image_size_ = size;
  return other;
}

bool ClassifierData::has_many_labels() const { return format_ == "multilabel_folder"; }

void ClassifierData::find_classes() {
  const bool trains = mox::flag("run_mode") == "train";
  const std::vector<std::string> trained =
      trains || looks_at_images() ? std::vector<std::string>{} : label_names_of_run();
  // Classes of arrays have numbers: the run's list is theirs unless it has names.
  const bool are_numbers =
      is_array_file(format_) && given_classes() == 0 && trained == numbers(std::ssize(trained));
  // Records that are predicted need no list of their own: their labels only have to be in range.
  const auto count = given_classes();
  const bool are_unlisted = mox::flag("run_mode") == "predict" && format_ == "tfrecord" &&
                            (count == 0 || count == std::ssize(trained)) &&
                            !mox::file::exists(inside(directory_, "labels.txt"));
  if (!trained.empty() && (format_ == "image_folder" || has_many_labels() || are_numbers || are_unlisted)) {
    label_names_ = trained;
    num_classes_ = std::ssize(label_names_);
    return;
  }
  find_classes_of_data();
  if (!trained.empty() && trained != label_names_)
    throw mox::DataError(
        "the run was trained with " + std::to_string(trained.size()) + " classes (" + trained.front() +
        ", ...), '" + directory_ + "' has " + std::to_string(label_names_.size()) + " (" +
        label_names_.front() +
        ", ...), and the lists differ: its labels would mean something else. The run's list is "
        "in its checkpoint, or labels.txt beside that");
}

void ClassifierData::find_classes_of_data() {
  if (looks_at_images()) {
    label_names_ = label_names_of_run();
    if (label_names_.empty())
      throw mox::NotFound(
          "the classes of the run are not known: its checkpoint keeps no list of them, and there is no "
          "labels.txt in train_url or beside checkpoint_path, where the training has written it");
  } else if (format_ == "image_folder") {
    label_names_ = mox::data::ImageClassificationRaw(folder_of(directory_, train_split_, "data.train_split"))
                       .label_names();
  } else if (has_many_labels()) {
    label_names_ =
        mox::data::MultilabelClassificationRaw(folder_of(directory_, train_split_, "data.train_split"))
            .label_names();
  } else if (is_array_file(format_)) {
    const auto given = given_classes();
    ArrayFile trained = array_file(train_split_);
    trained.needs_labels = true;  // a prediction reads none
    label_names_ = numbers(given > 0 ? given : classes_of_arrays(trained));
  } else if (format_ == "tfrecord") {
    const std::string list = inside(directory_, "labels.txt");
    num_classes_ = given_classes();
    if (num_classes_ == 0 && !mox::file::exists(list))
      throw mox::InvalidArgument("data.num_classes is 0 and there is no '" + list +
                                 "': the number of classes is not known");
    label_names_ = mox::file::exists(list) ? mox::data::read_label_names(list) : numbers(num_classes_);
    if (num_classes_ != 0 && num_classes_ != std::ssize(label_names_))
      throw mox::InvalidArgument("data.num_classes is " + std::to_string(num_classes_) + ", but '" + list +
                                 "' has " + std::to_string(label_names_.size()) + " classes");
  } else {
    label_names_ = numbers(format_ == "cifar100" ? 100 : 10);
  }
  num_classes_ = std::ssize(label_names_);
}

ArrayFile ClassifierData::array_file(const std::string& split) const {
  const auto maximum = mox::get_flag<double>("data.csv_maximum");
  if (!(maximum > 0))
    throw mox::InvalidArgument("data.csv_maximum must be above 0, it is " + std::to_string(maximum));
  return {.path = inside(directory_, split + "." + format_),
          .csv_image = mox::Shape{mox::get_model_meta(network_).channels, image_size_, image_size_},
          .csv = csv_options(),
          .csv_maximum = static_cast<float>(maximum),
          .label_offset = label_offset(),
          .image_size = given_image_size(),
          .needs_labels = mox::flag("run_mode") != "predict"};
}

// Where each sample is measured or answered, another cannot take its place.
mox::data::OnBadSample ClassifierData::on_bad_sample(mox::ModeKeys mode) const {
  const auto given = mox::data::on_bad_sample_from_string(mox::flag("data.on_bad_sample"));
  if (given == mox::data::OnBadSample::kError || mode == mox::ModeKeys::TRAIN) return given;
  if (mode == mox::ModeKeys::PREDICT && has_files_of_images(format_))
    throw mox::InvalidArgument("data.on_bad_sample is 'skip' (" + mox::option_origin("data.on_bad_sample") +
                               "), but in run_mode predict a bad image cannot be skipped: each is to get its "
                               "own answer. Leave it at error, which names a bad image, and take that away");
  return mox::data::OnBadSample::kLeaveOut;
}

mox::data::ImageOptions ClassifierData::image_options(mox::ModeKeys mode) const {
  const std::string recipe =
      mox::flag("augmentation.recipe").empty() ? network_ : mox::flag("augmentation.recipe");
  const int size = static_cast<int>(mode == mox::ModeKeys::TRAIN ? image_size_ : eval_image_size_);
  mox::data::ImageOptions options;
  options.augmentation = mox::get_data_augmentation_fn(recipe, mode, size, size);
  options.augmentation.channels = static_cast<int>(mox::get_model_meta(network_).channels);
  options.augmentation.fast_decode = mox::get_flag<bool>("augmentation.fast_decode");
  options.dtype = is_mixed_up(mode) ? mox::DType::kFloat32 : mox::preferred_image_dtype();
  options.on_bad_sample = on_bad_sample(mode);
  options.max_bad_samples = mox::get_flag<int64_t>("data.max_bad_samples");
  options.max_bad_share = mox::get_flag<double>("data.max_bad_share");
  options.cache = mox::data::image_cache_from_string(mox::flag("data.cache"));
  options.cache_content = mox::data::cache_content_from_string(mox::flag("data.cache_content"));
  options.cache_bytes = static_cast<int64_t>(cache_gigabytes() * 1e9);
  if (const std::string cache = mox::flag("data.cache_directory"); !cache.empty())
    options.cache_directory = inside(cache, mode == mox::ModeKeys::TRAIN ? train_split_ : eval_split_);
  options.remove_cache_on_finish = mox::get_flag<bool>("data.remove_cache_on_finish");
  if (mode != mox::ModeKeys::TRAIN) return options;
  if (const double area = mox::get_flag<double>("augmentation.min_area"); area != 0) {
    require_area_effect(options.augmentation, recipe);
    options.augmentation.min_area = area;
  }
  if (const auto jitter = colour_jitter()) options.augmentation.jitter = *jitter;
  options.augmentation.cut_out = mox::get_flag<int>("augmentation.cut_out");
  if (options.augmentation.cut_out >= size)
    throw mox::InvalidArgument("augmentation.cut_out is " + mox::flag("augmentation.cut_out") +
                               ", and images are " + std::to_string(size) +
                               " pixels wide: hardly anything would be left of them");
  return options;
}

mox::ImageModel ClassifierData::image_model() const {
  return {.network = network_,
          .image_size = eval_image_size_,
          .recipe = mox::flag("augmentation.recipe").empty() ? network_ : mox::flag("augmentation.recipe"),
          .fast_decode = mox::get_flag<bool>("augmentation.fast_decode"),
          .many_labels = has_many_labels(),
          .array_format = augments_images(format_) ? "" : format_,
          .precision = mox::flag("precision"),
          .conv_algorithm = mox::flag("conv_algorithm"),
          .conv_error = mox::get_flag<double>("conv_error"),
          .label_names = label_names_};
}

mox::Dataset ClassifierData::samples(mox::ModeKeys mode) const {
  const bool trains = mode == mox::ModeKeys::TRAIN;
  const std::string& split = trains ? train_split_ : eval_split_;
  const std::string flag = trains ? "data.train_split" : "data.eval_split";
  if (looks_at_images()) {
    if (!augments_images(format_))
      throw mox::InvalidArgument("predict.images is set, but networks trained on data.format " + format_ +
                                 " have not been trained on files of images");
    return mox::data::image_files(mox::data::list_image_files(images_to_predict_), image_options(mode));
  }
  if (is_mnist(format_)) {
    const mox::Shape image{1, 28, 28};
    require_image_size(image, given_image_size(), "data.format mnist");
    return mox::data::mnist(directory_, split, {.image_shape = image});
  }
  if (is_array_file(format_)) {
    const ArrayFile file = array_file(split);
    if (mode == mox::ModeKeys::PREDICT) {
      mox::require_other_than_input(mox::flag("predictions"), file.path);
      mox::require_other_than_input(mox::flag("predictions"), array_file(train_split_).path,
                                    "of --data.train_split");
    }
    return samples_of_arrays(file, num_classes_);
  }
  const mox::data::ImageOptions options = image_options(mode);
  const mox::data::CifarOptions cifar{.augmentation = options.augmentation, .dtype = options.dtype};
  if (format_ == "cifar10") return mox::data::cifar10(directory_, split, cifar);
  if (format_ == "cifar100") return mox::data::cifar100(directory_, split, cifar);
  if (format_ == "tfrecord") {
    mox::data::ImageRecordOptions records;
    records.image = options;
    records.label_offset = label_offset();
    records.num_classes = num_classes_;
    records.label_names = label_names_;
    // The split may lie in a directory below.
    const fs::path shards = inside(directory_, split + "-*");
    return mox::data::image_classification_tfrecord(
        mox::data::match_files(shards.parent_path().string(), shards.filename().string()), records);
  }
  // One list decides: a class that the folder lacks does not shift the numbers of those that follow it.
  if (!has_many_labels())
    return mox::data::ImageClassificationRaw(folder_of(directory_, split, flag), label_names_)
        .dataset(options);
  return mox::data::MultilabelClassificationRaw(folder_of(directory_, split, flag), label_names_)
      .dataset(options);
}

mox::Dataset ClassifierData::dataset(mox::ModeKeys mode) const {
  mox::Dataset data = samples(mode);
  const bool training = mode == mox::ModeKeys::TRAIN;
  if (training) data = data.shuffle(data.cardinality());
  if (!batches()) return training ? data.repeat() : data;
  const auto batch_size = mox::get_flag<int64_t>("batch_size");
  // Batches end with a pass: one of two passes would leave no whole number of batches to a pass, as
  // max_epochs counts them.
  if (training)
    return mox::data::mix_up(
               data.batch(batch_size),
               {.alpha = mix_up_, .num_classes = num_classes_, .dtype = mox::preferred_image_dtype()})
        .repeat();
  const auto eval_batch_size = mox::get_flag<int64_t>("eval_batch_size");
  return data.batch(eval_batch_size > 0 ? eval_batch_size : batch_size);
}

}  // namespace image_classifier
