#include "models/image_classifier/array_data.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <locale>
#include <sstream>

#include "models/image_classifier/data_options.h"
#include "moxing/config/warn_once.h"
#include "runtime/base/file.h"

namespace image_classifier {
namespace {

constexpr double kEndOfCsvLabels = 1 << 24;  // the float32 that other whole numbers are rounded to, too

void warn_once(const std::string& text) {
  if (mox::rank() == 0) mox::internal::warn_once(text);
}

std::string less_offset(const ArrayFile& file) {
  if (file.label_offset == 0) return "";
  return ", less data.label_offset, " + std::to_string(file.label_offset);
}

// As people write it: 255, 0.5, 1e+06.
std::string short_number(float value) {
  std::ostringstream text;
  text.imbue(std::locale::classic());
  text << value;
  return text.str();
}

struct LabelledImages {
  mox::Array images, labels;  // labels: int32
};

std::map<std::string, mox::Array> arrays_of(const ArrayFile& file) {
  const std::string& path = file.path;
  try {
    if (file.needs_labels) return mox::data::read_npz(path, {"images", "labels"});
    return mox::data::read_npz(path, {"images"});
  } catch (const mox::NotFound& error) {
    if (!mox::is_there(path)) throw;
    throw mox::NotFound(std::string(error.what()) +
                        ". Expected are 'images' [samples, channels, height, width] and 'labels' [samples]: "
                        "numpy.savez(FILE, images=..., labels=...) gives arrays these names");
  }
}

// As int32, whatever integers they are.
mox::Array labels_of(const mox::Array& given, const ArrayFile& file) {
  mox::Array labels(mox::DType::kInt32, mox::Shape{given.elements()});
  const auto copy = [&](auto values) {
    for (size_t i = 0; i < values.size(); ++i) {
      const int64_t label = values[i];
      if (label < file.label_offset || label - file.label_offset >= std::numeric_limits<int32_t>::max())
        throw mox::DataError("'" + file.path + "': label " + std::to_string(label) + " of sample " +
                             std::to_string(i) + " cannot be the number of a class" + less_offset(file));
      labels.values<int32_t>()[i] = static_cast<int32_t>(label - file.label_offset);
    }
  };
  if (given.dtype() == mox::DType::kInt64)
    copy(given.values<int64_t>());
  else if (given.dtype() == mox::DType::kInt32)
    copy(given.values<int32_t>());
  else if (given.dtype() == mox::DType::kUInt8)
    copy(given.values<uint8_t>());
  else
    throw mox::DataError("'" + file.path + "': labels must be whole numbers, they are " +
                         to_string(given.type()) + ": save labels.astype('int64')");
  return labels;
}

// What is stored under that name, in NumPy's words: "uint16[8, 3, 32, 32]".
std::string stored_type(const std::string& path, const std::string& name) {
  const mox::data::NpyHeader header = mox::data::read_npz_headers(path, {name}).at(name);
  const char kind = header.stored[0];
  if (header.stored.size() != 2 || (kind != 'i' && kind != 'u' && kind != 'f')) return to_string(header.type);
  return (kind == 'f'   ? "float"
          : kind == 'u' ? "uint"
                        : "int") +
         std::to_string(8 * (header.stored[1] - '0')) + to_string(header.type.shape);
}

// Of arrays of another layout, such as [samples, height, width, channels], a height would be taken
// for the channels.
void require_channels(const mox::Array& images, int64_t expected, const std::string& path) {
  constexpr int64_t kMostChannels = 4;  // grey, two of greys, colours, colours with a mask
  const int64_t channels = images.shape()[1], last = images.shape()[3];
  if (channels == expected || (channels >= 1 && channels <= kMostChannels)) return;
  throw mox::DataError("'" + path + "': images are " + to_string(images.type()) + ", which would have " +
                       std::to_string(channels) +
                       " channels: [samples, channels, height, width] is expected" +
                       (last <= kMostChannels ? "; these look like [samples, height, width, channels]: save "
                                                "images.transpose(0, 3, 1, 2)"
                                              : "; numpy.transpose brings the axes into this order"));
}

std::string way_out_of(const mox::Array& images) {
  if (images.shape().rank() == 3)
    return "; if they are grey, [samples, height, width], save images[:, None], with one channel";
  if (images.shape().rank() == 2)
    return "; if a row is an image, save images.reshape(len(images), CHANNELS, HEIGHT, WIDTH)";
  if (images.shape().rank() != 4) return "";
  return ": save images.astype('uint8') where all are in 0 to 255, or (images / LARGEST).astype('float32')";
}

std::string shape_advice(const mox::Array& labels) {
  if (labels.shape().rank() != 2) return "";
  return labels.shape()[1] == 1 ? "; save labels[:, 0]"
                                : "; where each row marks its class (one-hot), save labels.argmax(axis=1)";
}

// Floats are taken as they are. Those that nobody has scaled hardly learn: pixels of 8 bits are refused, for
// they have a type that says so; what else is far from 1 may be meant.
void check_range(const mox::Array& images, const std::string& path) {
  constexpr float kLargestPixel = 255, kFarFromOne = 16;
  const auto values = images.values<float>();
  const auto odd = std::ranges::find_if(values, [](float value) { return !std::isfinite(value); });
  if (odd != values.end())
    throw mox::DataError("'" + path + "': image " +
                         std::to_string((odd - values.begin()) * images.shape()[0] / images.elements()) +
                         " has a value that is not finite");
  if (values.empty()) return;
  const auto [smallest, largest] = std::ranges::minmax(values);
  if (std::max(-smallest, largest) <= kFarFromOne) return;
  const bool are_pixels = smallest >= 0 && largest > kLargestPixel / 2 && largest <= kLargestPixel &&
                          std::ranges::all_of(values, [](float value) { return value == std::floor(value); });
  if (are_pixels)
    throw mox::DataError("'" + path + "': images are float32 and hold the whole numbers 0 to " +
                         short_number(largest) +
                         ", pixels of 8 bits: float32 is taken as it is, and only uint8 divided by 255. Save "
                         "images.astype('uint8'), or images / 255 as float32");
  warn_once(
      "'" + path + "': images are float32 from " + short_number(smallest) + " to " + short_number(largest) +
      ", and are taken as they are (only uint8 is divided by 255): networks learn from values around 0 to "
      "1 and hardly from these; save images / " +
      short_number(std::max(-smallest, largest)) + " unless they are meant so");
}

LabelledImages read_npz(const ArrayFile& file) {
  const std::string& path = file.path;
  const auto arrays = arrays_of(file);
  const mox::Array images = arrays.at("images");
  if (images.shape().rank() != 4 ||
      (images.dtype() != mox::DType::kUInt8 && images.dtype() != mox::DType::kFloat32))
    throw mox::DataError("'" + path +
                         "': images must be uint8 or float32 [samples, channels, height, width], they are " +
                         stored_type(path, "images") + way_out_of(images));
  require_channels(images, file.csv_image[0], path);
  require_image_size(images.shape(), file.image_size, "'" + path + "'");
  if (images.dtype() == mox::DType::kFloat32) check_range(images, path);
  if (!file.needs_labels) return {images, mox::Array(mox::DType::kInt32, mox::Shape{images.shape()[0]})};
  const mox::Array labels = arrays.at("labels");
  if (labels.shape() != mox::Shape{images.shape()[0]})
    throw mox::DataError("'" + path + "': labels must be [" + std::to_string(images.shape()[0]) +
                         "], the number of a class for each image, they are " + stored_type(path, "labels") +
                         shape_advice(labels));
  return {images, labels_of(labels, file)};
}

int32_t csv_label(float given, const ArrayFile& file) {
  const double offset = file.label_offset, number = given - offset;
  const bool is_in_range =  // NaN is not
      number >= 0 && number < kEndOfCsvLabels && std::fabs(given) < kEndOfCsvLabels;
  const auto label = static_cast<int32_t>(is_in_range ? number : 0);
  if (!is_in_range || label != number)
    throw mox::DataError("'" + file.path + "': " + std::to_string(given) +
                         ", the first number of a line, cannot be the number of a class" + less_offset(file) +
                         ": a whole number below 2^24 is expected");
  return label;
}

// What data.csv_missing may not stand for: a label, or all of a line, such as the delimiters alone that
// spreadsheets put at the end.
void require_numbers(const mox::Array& table, const ArrayFile& file) {
  const int64_t lines = table.shape()[0], columns = table.shape()[1];
  const auto values = table.values<float>();
  const bool needs_label = file.needs_labels && columns == file.csv_image.elements() + 1;
  for (int64_t line = 0; line < lines; ++line) {
    const auto cells = values.subspan(line * columns, columns);
    const auto is_missing = [](float value) { return std::isnan(value); };
    const bool has_none = std::ranges::all_of(cells, is_missing);
    if (!has_none && !(needs_label && is_missing(cells.front()))) continue;
    throw mox::DataError("'" + file.path + "': line " + std::to_string(line + 1) +
                         " (without the header and empty ones) has " +
                         (has_none ? "no number, only delimiters: take it away"
                                   : "no label in its first cell, which data.csv_missing does not stand for: "
                                     "write the number of its class, or take the line away"));
  }
}

// Missing numbers have a value in it. Where all lines lack the last one it is rather that each ends with a
// delimiter and has no label: a pixel would be taken for it, and each other for the one before.
mox::Array csv_numbers(const ArrayFile& file) {
  if (!file.csv.missing) return mox::data::read_csv(file.path, file.csv);
  mox::data::CsvOptions marked = file.csv;
  marked.missing = std::numeric_limits<float>::quiet_NaN();  // no number of a file
  mox::Array table = mox::data::read_csv(file.path, marked);
  const int64_t lines = table.shape()[0], columns = table.shape()[1];
  const auto values = table.values<float>();
  bool lacks_last = lines > 0;
  for (int64_t line = 1; lacks_last && line <= lines; ++line)
    lacks_last = std::isnan(values[line * columns - 1]);
  if (lacks_last && columns == file.csv_image.elements() + 1)
    throw mox::DataError("'" + file.path + "': the last of the " + std::to_string(columns) +
                         " cells is missing in every line. Where it is the delimiter at the end of lines "
                         "without a label, leave that out; where all images lack their last pixel, write a "
                         "number there");
  require_numbers(table, file);
  std::ranges::replace_if(
      values, [](float value) { return std::isnan(value); }, *file.csv.missing);
  return table;
}

LabelledImages read_csv(const ArrayFile& file) {
  const mox::Array table = csv_numbers(file);
  const int64_t lines = table.shape()[0], columns = table.shape()[1], pixels = file.csv_image.elements();
  const bool has_labels = columns == pixels + 1;
  if (!has_labels && (file.needs_labels || columns != pixels))
    throw mox::DataError("'" + file.path + "': a line has " + std::to_string(columns) +
                         " numbers; a label and an image of " + to_string(file.csv_image) + " are " +
                         std::to_string(pixels + 1) +
                         (file.needs_labels ? "" : ", an image alone " + std::to_string(pixels)) +
                         " (model.image_size says how large images are)");
  mox::Array images(mox::DType::kFloat32,
                    mox::Shape{lines, file.csv_image[0], file.csv_image[1], file.csv_image[2]});
  mox::Array labels(mox::DType::kInt32, mox::Shape{lines});
  float largest = 0;
  const float* from = table.values<float>().data();
  float* to = images.values<float>().data();
  for (int32_t& label : labels.values<int32_t>()) {
    if (file.needs_labels) label = csv_label(*from, file);
    if (has_labels) ++from;
    largest = std::max(largest, *std::max_element(from, from + pixels));
    to = std::transform(from, from + pixels, to, [&](float pixel) { return pixel / file.csv_maximum; });
    from += pixels;
  }
  if (largest > file.csv_maximum || (largest <= 1 && largest > 0 && file.csv_maximum > 1))
    warn_once("'" + file.path + "': the largest pixel is " + short_number(largest) +
              ", and pixels are divided by data.csv_maximum, " + short_number(file.csv_maximum) +
              ": networks learn from values around 0 to 1; is data.csv_maximum=" +
              short_number(largest <= 1 ? 1 : largest) + " meant?");
  return {images, labels};
}

LabelledImages read(const ArrayFile& file) {
  return file.path.ends_with(".csv") ? read_csv(file) : read_npz(file);
}

// The numbers from 0 that `there`, which is sorted, lacks: the first few of them.
std::string numbers_between(const std::vector<int32_t>& there) {
  constexpr int kShown = 5;
  std::string text;
  int32_t expected = 0;
  int shown = 0;
  for (const int32_t number : there)
    for (; expected <= number; ++expected) {
      if (expected == number) continue;
      if (shown++ == kShown) return text + ", ...";
      text += (text.empty() ? "" : ", ") + std::to_string(expected);
    }
  return text;
}

mox::Element to_unit_interval(const mox::Element& sample) {
  mox::Array image(mox::DType::kFloat32, sample[0].shape());
  const auto pixels = sample[0].values<uint8_t>();
  std::transform(pixels.begin(), pixels.end(), image.values<float>().begin(),
                 [](uint8_t pixel) { return static_cast<float>(pixel) / 255; });
  return {image, sample[1]};
}

}  // namespace

void require_image_size(const mox::Shape& images, int64_t given, const std::string& where) {
  const int64_t height = images[images.rank() - 2], width = images[images.rank() - 1];
  if (given == 0 || (height == given && width == given)) return;
  throw mox::ConfigError("model.image_size is " + std::to_string(given) + " (" +
                         mox::option_origin("model.image_size") + "), and the images of " + where + " are " +
                         std::to_string(height) + " x " + std::to_string(width) +
                         " pixels and are not resized. Leave the option out");
}

int64_t classes_of_arrays(const ArrayFile& file) {
  const mox::Array labels = read(file).labels;
  const auto values = labels.values<int32_t>();
  if (values.empty()) throw mox::DataError("'" + file.path + "' holds no samples");
  std::vector<int32_t> there(values.begin(), values.end());
  std::ranges::sort(there);
  there.erase(std::unique(there.begin(), there.end()), there.end());
  if (there.back() >= kMostClasses)
    throw mox::DataError("'" + file.path + "': the label " + std::to_string(there.back()) +
                         " would be one of as many classes, more than " + std::to_string(kMostClasses) +
                         ". There are " + std::to_string(there.size()) +
                         " different labels: numpy.unique(labels, return_inverse=True)[1] numbers them 0, 1, "
                         "2, ... (and data.label_offset is subtracted from labels)");
  const int64_t classes = int64_t{there.back()} + 1, lacking = classes - std::ssize(there);
  if (lacking > 0)
    warn_once("'" + file.path + "': " + std::to_string(lacking) + " of the " + std::to_string(classes) +
              " classes 0 to " + std::to_string(there.back()) + " have no sample: " + numbers_between(there) +
              ". Number the classes 0, 1, 2, ... (data.label_offset is subtracted from labels; "
              "numpy.unique(labels, return_inverse=True)[1] closes gaps), or say with data.num_classes that "
              "there are so many");
  return classes;
}

mox::Dataset samples_of_arrays(const ArrayFile& file, int64_t num_classes) {
  const LabelledImages data = read(file);
  for (int32_t label : data.labels.values<int32_t>())
    if (label >= num_classes)
      throw mox::DataError("'" + file.path + "': label " + std::to_string(label) +
                           " is out of range: expected 0 to " + std::to_string(num_classes - 1));
  const mox::Dataset samples = mox::Dataset::from_arrays({data.images, data.labels});
  return data.images.dtype() == mox::DType::kUInt8 ? samples.map(to_unit_interval) : samples;
}

}  // namespace image_classifier
