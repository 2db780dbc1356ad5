#include "models/image_classifier/data_options.h"

#include <models/zoo/zoo.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/nearest_name.h"

namespace image_classifier {
namespace {

char one_character(const std::string& flag) {
  const std::string text = mox::flag(flag);
  if (text == "tab" || text == "\\t") return '\t';
  if (text.size() != 1)
    throw mox::ConfigError(flag + " must be one character, or 'tab'; it is '" + text + "'");
  return text[0];
}

// Whether somebody has given the option to this run, and not the run that it goes on with.
bool is_given_here(const std::string& flag) {
  return mox::is_given(flag) && mox::option_origin(flag) != "set_flag";
}

bool is_off(const std::string& text) {
  double number = 1;
  const char* const end = text.data() + text.size();
  const bool is_number = std::from_chars(text.data(), end, number).ptr == end;
  return (is_number && number == 0) || text.empty() || text == "false" || text == "none" || text == "error";
}

}  // namespace

mox::data::CsvOptions csv_options() {
  mox::data::CsvOptions options{.delimiter = one_character("data.csv_delimiter"),
                                .header = mox::get_flag<bool>("data.csv_header"),
                                .decimal = one_character("data.csv_decimal"),
                                .option_prefix = "data.csv_"};
  const std::string missing = mox::flag("data.csv_missing");
  if (missing.empty()) return options;
  float number = 0;
  const char* const end = missing.data() + missing.size();
  const auto [rest, error] = std::from_chars(missing.data(), end, number);
  if (error != std::errc() || rest != end || !std::isfinite(number))
    throw mox::ConfigError("data.csv_missing must be a finite number, or empty; it is '" + missing + "'");
  options.missing = number;
  return options;
}

void require_effect(const std::string& format, const std::vector<OptionOfFormats>& options) {
  for (const auto& [flag, formats] : options)
    if (is_given_here(flag) && !is_off(mox::flag(flag)) &&
        std::ranges::find(formats, format) == formats.end()) {
      std::string names;
      for (const std::string& name : formats) names += (names.empty() ? "" : ", ") + name;
      throw mox::ConfigError(std::string(flag) + " is '" + mox::flag(flag) + "' (" +
                             mox::option_origin(flag) + "), and has no effect on data.format " + format +
                             ": it is for " + names + ". Leave it out");
    }
}

void require_effect(const std::string& format) {
  const std::vector<std::string> numbers{"tfrecord", "npz", "csv"}, csv{"csv"},
      files{"image_folder", "multilabel_folder", "tfrecord"},
      augmented{"image_folder", "multilabel_folder", "tfrecord", "cifar10", "cifar100"};
  require_effect(format, {{"data.num_classes", numbers},
                          {"data.label_offset", numbers},
                          {"data.csv_header", csv},
                          {"data.csv_delimiter", csv},
                          {"data.csv_decimal", csv},
                          {"data.csv_missing", csv},
                          {"data.csv_maximum", csv},
                          {"data.on_bad_sample", files},
                          {"data.max_bad_samples", files},
                          {"data.max_bad_share", files},
                          {"augmentation.recipe", augmented},
                          {"augmentation.min_area", augmented},
                          {"augmentation.colour_jitter", augmented},
                          {"augmentation.cut_out", augmented},
                          {"augmentation.fast_decode", files}});
  // In an object store, data.cache: directory names the copy that other formats have in any case.
  if (mox::file::is_remote(mox::flag("data_url"))) return;
  require_effect(format, {{"data.cache", files},
                          {"data.cache_content", files},
                          {"data.cache_gigabytes", files},
                          {"data.cache_directory", files},
                          {"data.remove_cache_on_finish", files}});
}

void require_area_effect(const mox::image::Augmentation& recipe, const std::string& name) {
  if (recipe.crop == mox::image::Crop::kRandomResized || !is_given_here("augmentation.min_area")) return;
  throw mox::ConfigError("augmentation.min_area is '" + mox::flag("augmentation.min_area") + "' (" +
                         mox::option_origin("augmentation.min_area") +
                         "), and has no effect on the recipe of " + name +
                         ", which makes no random-resized crops. Leave it out, or take another recipe "
                         "(augmentation.recipe)");
}

int64_t given_image_size() {
  return is_given_here("model.image_size") ? mox::get_flag<int64_t>("model.image_size") : 0;
}

void require_recipe(const std::string& name) {
  const std::vector<std::string> networks = mox::model_names();
  if (name.empty() || std::ranges::find(networks, name) != networks.end()) return;
  if (name.find("cifar") != std::string::npos) return;
  for (const char* family : {"lenet", "vgg", "alexnet", "inception", "resnet", "mobilenet"})
    if (name.starts_with(family)) return;
  throw mox::ConfigError(mox::internal::unknown_name_message("augmentation.recipe", name, networks));
}

double cache_gigabytes() {
  const auto given = mox::get_flag<double>("data.cache_gigabytes");
  constexpr double kMost = 1e9;
  if (!(given >= 0 && given <= kMost))
    throw mox::ConfigError("data.cache_gigabytes must be 0 to 1e9, it is " +
                           mox::flag("data.cache_gigabytes"));
  return given;
}

std::optional<mox::image::ColourJitter> colour_jitter() {
  const auto given = mox::get_flag<std::vector<double>>("augmentation.colour_jitter");
  if (given.empty()) return std::nullopt;
  if (given.size() != 4)
    throw mox::ConfigError("augmentation.colour_jitter is '" + mox::flag("augmentation.colour_jitter") +
                           "' (" + mox::option_origin("augmentation.colour_jitter") +
                           "), expected are four numbers: brightness, contrast, saturation and hue, 0 for "
                           "one that is to stay");
  const auto value = [&](size_t i) { return static_cast<float>(given[i]); };
  return mox::image::ColourJitter{
      .brightness = value(0), .contrast = value(1), .saturation = value(2), .hue = value(3)};
}

int64_t given_classes() {
  const auto given = mox::get_flag<int64_t>("data.num_classes");
  if (given < 0 || given > kMostClasses)
    throw mox::ConfigError("data.num_classes is " + std::to_string(given) + " (" +
                           mox::option_origin("data.num_classes") + "), expected is a number from 0 to " +
                           std::to_string(kMostClasses));
  return given;
}

int64_t label_offset() {
  const auto offset = mox::get_flag<int64_t>("data.label_offset");
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  if (offset < -kMost || offset > kMost)
    throw mox::ConfigError("data.label_offset is " + std::to_string(offset) + " (" +
                           mox::option_origin("data.label_offset") + "), expected is a number from " +
                           std::to_string(-kMost) + " to " + std::to_string(kMost));
  return offset;
}

void define_data_flags() {
  mox::define_flag(
      "data.format", "image_folder",
      "What lies in data_url: image_folder (SPLIT/CLASS/*.jpg), multilabel_folder (SPLIT/images/x.jpg with "
      "SPLIT/labels/x.jpg.txt), tfrecord (SPLIT-* and labels.txt), npz (SPLIT.npz with images and labels), "
      "csv (SPLIT.csv, a line for each image: its label and its pixels), cifar10, cifar100, mnist.");
  mox::define_flag("data.train_split", "train", "The part of the data that is trained on.");
  mox::define_flag(
      "data.eval_split", "",
      "The part that is evaluated on. Empty: validation, or test for cifar, mnist, npz and csv.");
  mox::define_flag("data.num_classes", 0,
                   "Classes of tfrecord, npz and csv data. 0: as labels.txt in data_url says, or the labels "
                   "of npz and csv.");
  mox::define_flag("data.csv_header", false, "Whether the first line of csv data names the columns.");
  mox::define_flag("data.csv_delimiter", ",", "Between the cells of csv data: a character, or tab.");
  mox::define_flag("data.csv_decimal", ".", "The decimal mark of csv data: . or ,");
  mox::define_flag("data.csv_missing", "",
                   "The number that an empty cell of csv data, or one that says NA, stands for. Empty: such "
                   "cells are refused.");
  mox::define_flag("data.csv_maximum", 255.0, "The value of a pixel in csv data that becomes 1. Above 0.");
  mox::define_flag("data.label_offset", 0, "Subtracted from the labels of tfrecord, npz and csv data.");
  mox::define_flag(
      "data.on_bad_sample", "error",
      "An image that cannot be read: error ends the run; skip takes the next one in its place in a training "
      "and leaves it out of an evaluation, up to data.max_bad_samples.");
  mox::define_flag("data.max_bad_samples", 100, "With skip: more bad images than these end the run.");
  mox::define_flag("data.max_bad_share", 0.5,
                   "With skip: bad images of more than this share of a class end the run. 1: of any.");
  mox::define_flag(
      "data.cache", "none",
      "Keep images for later passes: memory (up to data.cache_gigabytes), directory "
      "(data.cache_directory), or none. With a data_url in an object store, images and records are "
      "read there, and directory copies the data set to this machine first.");
  mox::define_flag("data.cache_content", "decoded",
                   "What is kept: decoded (pixels), resized (pixels of images made small, ready for "
                   "augmentation: fastest, with slightly different samples), or bytes (the files as they "
                   "are, for those that lie far away).");
  mox::define_flag("data.cache_gigabytes", 4.0, "Limit of the cache in memory.");
  mox::define_flag("data.cache_directory", "", "Where the cache in a directory is kept, for later runs too.");
  mox::define_flag("data.remove_cache_on_finish", false, "Remove the cache's files when the run ends.");
  mox::define_flag("augmentation.recipe", "",
                   "The network whose usual augmentation is taken. Empty: the model's own.");
  mox::define_flag(
      "augmentation.min_area", 0.0,
      "Smallest part of the image that a random-resized crop takes, in (0, 1]. 0: the recipe's.");
  mox::define_flag(
      "augmentation.colour_jitter", std::vector<double>{},
      "Brightness, contrast, saturation and hue (0 to 0.5): how far each of the four may change. Empty: the "
      "recipe's.");
  mox::define_flag("augmentation.cut_out", 0,
                   "Side in pixels of a square that is blanked in each training image. 0: none.");
  mox::define_flag("augmentation.mix_up", 0.0, "MixUp's alpha, in (0, 1]. 0: no MixUp.");
  mox::define_flag("augmentation.fast_decode", false,
                   "Decode large JPEG images at a reduced scale: faster, with slightly different pixels.");
}

}  // namespace image_classifier
