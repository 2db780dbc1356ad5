#include "models/zoo/image_model.h"

#include <fmt/format.h>
#include <models/zoo/zoo.h>

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <numeric>
#include <utility>

#include "models/zoo/internal/image_model_json.h"
#include "runtime/base/file.h"

namespace mox {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFile = "image_model.json";

class ImageModelHook : public TrainingHook {
 public:
  explicit ImageModelHook(ImageModel model) : model_(std::move(model)) {}
  void after_create_session(Session& session) override {
    if (!session.log_dir().empty() && rank() == 0)
      write_file_atomically(session.log_dir() + "/" + kFile, internal::json_of_model(model_));
  }

 private:
  ImageModel model_;
};

NetworkOutput network_output(const ImageModel& model, const Tensor& images, ModeKeys mode) {
  NetworkOptions options{.num_classes = std::ssize(model.label_names)};
  if (!get_model_meta(model.network).takes_any_image_size) options.image_size = model.image_size;
  return get_model_fn(model.network, options)(images, mode);
}

// Of a run whose image_model.json is of an older program: as its checkpoint says.
std::string array_format_kept_by(const std::string& run) {
  const auto kept = kept_options_of(run);
  const auto format = kept.find("data.format");
  if (format == kept.end()) return "";
  const bool is_of_arrays = format->second == "npz" || format->second == "csv" || format->second == "mnist";
  return is_of_arrays ? format->second : "";
}

}  // namespace

std::shared_ptr<Hook> image_model_hook(ImageModel model) {
  return std::make_shared<ImageModelHook>(std::move(model));
}

ImageModel read_image_model(const std::string& run) {
  fs::path path = fs::path(run) / kFile;
  if (!is_there(path)) path = fs::path(run).parent_path() / kFile;
  if (!is_there(path)) path = fs::path(run).parent_path().parent_path() / kFile;  // of log_dir/best
  if (!is_there(path))
    throw NotFound(fmt::format(
        "there is no '{}' in '{}' or above it: it is what image_classifier writes beside its checkpoints",
        kFile, run));
  ImageModel model = internal::model_of_json(read_file(path.string()), path.string());
  if (model.array_format == internal::kUnsaidFormat) model.array_format = array_format_kept_by(run);
  return model;
}

image::Augmentation preprocessing_of(const ImageModel& model) {
  if (!model.array_format.empty())
    throw InvalidArgument(fmt::format(
        "this {} was trained on data.format {}, whose images were numbers already, and not on files of "
        "images: how such a file is to be scaled is not known. mox::Predictor takes numbers, and "
        "image_classifier --run_mode=predict data of that format",
        model.network, model.array_format));
  const int size = model.image_size;
  image::Augmentation recipe = get_data_augmentation_fn(model.recipe, ModeKeys::PREDICT, size, size);
  recipe.channels = static_cast<int>(get_model_meta(model.network).channels);
  recipe.fast_decode = model.fast_decode;
  return recipe;
}

class ImagePredictor::Implementation {
 public:
  Implementation(const std::string& checkpoint, ImageModel model, int threads)
      : model_(std::move(model)),
        recipe_(preprocessing_of(model_)),
        predictor_(
            checkpoint,
            [this](const Inputs& in, ModeKeys mode) {
              const NetworkOutput output = network_output(model_, in[0], mode);
              return ModelSpec{
                  .output_info = {{"probabilities", model_.many_labels ? sigmoid(output.logits)
                                                                       : output.end_point("predictions")}}};
            },
            {.threads = threads,
             .precision = model_.precision,
             .conv_algorithm = model_.conv_algorithm,
             .conv_error = model_.conv_error}) {}

  Array probabilities(std::span<const std::string> encoded) const {
    if (encoded.empty()) throw InvalidArgument("ImagePredictor: there are no images");
    const int64_t count = encoded.size();
    const std::vector<Array> images = {
        Array(DType::kFloat32, {count, recipe_.channels, recipe_.height, recipe_.width})};
    std::unique_ptr<image::ImageReader> reader = take_reader();
    for (int64_t i = 0; i < count; ++i) {
      Array row = images[0].rows(i, i + 1);
      const std::string& bytes = encoded[i];
      reader->read(std::as_bytes(std::span(bytes)), fmt::format("image {}", i), SampleContext{},
                   row.values<float>().data());
    }
    give_back(std::move(reader));
    return predictor_.predict(images).array("probabilities");
  }

  const ImageModel& model() const { return model_; }
  const Predictor& predictor() const { return predictor_; }

 private:
  std::unique_ptr<image::ImageReader> take_reader() const {
    const std::lock_guard lock(mutex_);
    if (readers_.empty()) return std::make_unique<image::ImageReader>(recipe_);
    auto reader = std::move(readers_.back());
    readers_.pop_back();
    return reader;
  }
  void give_back(std::unique_ptr<image::ImageReader> reader) const {
    const std::lock_guard lock(mutex_);
    readers_.push_back(std::move(reader));
  }

  ImageModel model_;
  image::Augmentation recipe_;
  Predictor predictor_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<image::ImageReader>> readers_;  // that no call is using
};

ImagePredictor::ImagePredictor(const std::string& run, int threads)
    : ImagePredictor(run, read_image_model(run), threads) {}
ImagePredictor::ImagePredictor(const std::string& checkpoint, ImageModel model, int threads)
    : implementation_(std::make_unique<Implementation>(checkpoint, std::move(model), threads)) {}
ImagePredictor::~ImagePredictor() = default;
ImagePredictor::ImagePredictor(ImagePredictor&&) noexcept = default;
ImagePredictor& ImagePredictor::operator=(ImagePredictor&&) noexcept = default;

const ImageModel& ImagePredictor::model() const { return implementation_->model(); }
const Predictor& ImagePredictor::predictor() const { return implementation_->predictor(); }

Array ImagePredictor::probabilities(std::span<const std::string> encoded) const {
  return implementation_->probabilities(encoded);
}

std::vector<std::pair<std::string, float>> ImagePredictor::best(const std::string& encoded,
                                                                size_t count) const {
  const Array all = probabilities(std::span(&encoded, 1));
  const auto values = all.values<float>();
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater(), [&](size_t i) { return values[i]; });
  std::vector<std::pair<std::string, float>> result;
  for (size_t i = 0; i < std::min(count, order.size()); ++i)
    result.emplace_back(model().label_names[order[i]], values[order[i]]);
  return result;
}

}  // namespace mox
