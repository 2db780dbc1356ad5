#include "models/image_classifier/array_data.h"

#include <algorithm>
#include <limits>

namespace image_classifier {
namespace {

constexpr float kLargestCsvLabel = 1 << 24;  // float32 holds every whole number up to it

struct LabelledImages {
  mox::Array images, labels;  // labels: int32
};

mox::Array array_of(const std::map<std::string, mox::Array>& arrays, const std::string& name,
                    const std::string& path) {
  const auto found = arrays.find(name);
  if (found == arrays.end())
    throw mox::NotFound("'" + path + "' has no array '" + name + "': 'images' and 'labels' are expected");
  return found->second;
}

// As int32, whatever integers they are.
mox::Array labels_of(const mox::Array& given, const std::string& path) {
  mox::Array labels(mox::DType::kInt32, mox::Shape{given.elements()});
  const auto copy = [&](auto values) {
    for (size_t i = 0; i < values.size(); ++i) {
      const int64_t label = values[i];
      if (label < 0 || label >= std::numeric_limits<int32_t>::max())
        throw mox::DataError("'" + path + "': label " + std::to_string(label) + " of sample " +
                             std::to_string(i) + " cannot be the number of a class");
      labels.values<int32_t>()[i] = static_cast<int32_t>(label);
    }
  };
  if (given.dtype() == mox::DType::kInt64)
    copy(given.values<int64_t>());
  else if (given.dtype() == mox::DType::kInt32)
    copy(given.values<int32_t>());
  else if (given.dtype() == mox::DType::kUInt8)
    copy(given.values<uint8_t>());
  else
    throw mox::DataError("'" + path + "': labels must be int32, int64 or uint8, they are " +
                         to_string(given.type()));
  return labels;
}

// Of arrays of another layout, such as [samples, height, width, channels], a height would be taken for the
// channels.
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

LabelledImages read_npz(const std::string& path, int64_t channels) {
  const auto arrays = mox::data::read_npz(path, {"images", "labels"});
  const mox::Array images = array_of(arrays, "images", path), labels = array_of(arrays, "labels", path);
  if (images.shape().rank() != 4 ||
      (images.dtype() != mox::DType::kUInt8 && images.dtype() != mox::DType::kFloat32))
    throw mox::DataError("'" + path +
                         "': images must be uint8 or float32 [samples, channels, height, width], they are " +
                         to_string(images.type()));
  require_channels(images, channels, path);
  if (labels.shape() != mox::Shape{images.shape()[0]})
    throw mox::DataError("'" + path + "': labels must be [" + std::to_string(images.shape()[0]) +
                         "], one for each image, they are " + to_string(labels.type()));
  return {images, labels_of(labels, path)};
}

LabelledImages read_csv(const ArrayFile& file) {
  const mox::Array table = mox::data::read_csv(file.path, file.csv);
  const int64_t lines = table.shape()[0], columns = table.shape()[1], pixels = file.csv_image.elements();
  if (columns != pixels + 1)
    throw mox::DataError("'" + file.path + "': a line has " + std::to_string(columns) +
                         " numbers; a label and an image of " + to_string(file.csv_image) + " are " +
                         std::to_string(pixels + 1) + " (model.image_size says how large images are)");
  mox::Array images(mox::DType::kFloat32,
                    mox::Shape{lines, file.csv_image[0], file.csv_image[1], file.csv_image[2]});
  mox::Array labels(mox::DType::kInt32, mox::Shape{lines});
  const float* from = table.values<float>().data();
  float* to = images.values<float>().data();
  for (int32_t& label : labels.values<int32_t>()) {
    label = static_cast<int32_t>(std::clamp(*from, -1.0f, kLargestCsvLabel + 1));
    if (static_cast<float>(label) != *from || label < 0 || *from > kLargestCsvLabel)
      throw mox::DataError("'" + file.path + "': " + std::to_string(*from) +
                           ", the first number of a line, cannot be the number of a class");
    ++from;
    to = std::transform(from, from + pixels, to, [&](float pixel) { return pixel / file.csv_maximum; });
    from += pixels;
  }
  return {images, labels};
}

LabelledImages read(const ArrayFile& file) {
  return file.path.ends_with(".csv") ? read_csv(file) : read_npz(file.path, file.csv_image[0]);
}

mox::Element to_unit_interval(const mox::Element& sample) {
  mox::Array image(mox::DType::kFloat32, sample[0].shape());
  const auto pixels = sample[0].values<uint8_t>();
  std::transform(pixels.begin(), pixels.end(), image.values<float>().begin(),
                 [](uint8_t pixel) { return static_cast<float>(pixel) / 255; });
  return {image, sample[1]};
}

}  // namespace

int64_t classes_of_arrays(const ArrayFile& file) {
  const mox::Array labels = read(file).labels;
  const auto values = labels.values<int32_t>();
  if (values.empty()) throw mox::DataError("'" + file.path + "' holds no samples");
  return int64_t{*std::max_element(values.begin(), values.end())} + 1;
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
