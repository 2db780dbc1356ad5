#include "moxing/formats/cifar.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <mutex>

#include "moxing/formats/internal/pickle.h"
#include "moxing/formats/tfrecord.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/log.h"

namespace mox::data {
namespace {

constexpr int kSide = 32;
constexpr size_t kPlane = kSide * kSide, kImage = 3 * kPlane;

CifarBatch empty_batch(size_t samples) {
  const int64_t count = samples;
  return {Array::uninitialized({DType::kUInt8, Shape{count, 3, kSide, kSide}}),
          Array(DType::kInt32, Shape{count})};
}

void require_label(int64_t label, int classes, const std::string& place) {
  if (label < 0 || label >= classes)
    throw DataError(fmt::format("{}: label {} is out of range: expected 0 to {}", place, label, classes - 1));
}

image::PlanarBitmap to_bitmap(const uint8_t* planes) {
  image::PlanarBitmap bitmap(kSide, kSide);
  for (int c = 0; c < image::kPlanes; ++c)
    for (int y = 0; y < kSide; ++y, planes += kSide) std::copy_n(planes, kSide, bitmap.plane(y, c));
  return bitmap;
}

class CifarSource : public RandomAccessSource {
 public:
  CifarSource(CifarBatch data, const CifarOptions& options) : data_(std::move(data)), options_(options) {
    const auto& recipe = options_.augmentation;
    signature_ = {{options_.dtype, Shape{recipe.channels, recipe.height, recipe.width}},
                  {DType::kInt32, Shape{}}};
    checksum_ = crc32c(data_.labels.as_bytes(), crc32c(data_.images.as_bytes()));
  }
  int64_t size() const override { return data_.labels.elements(); }
  const std::vector<TensorType>& signature() const override { return signature_; }
  std::string describe() const override {
    return fmt::format("cifar({} samples, crc {:08x}, augmented {})", size(), checksum_,
                       image::describe(options_.augmentation));
  }

  void read(int64_t index, const SampleContext& context,
            std::span<std::byte* const> components) const override {
    const size_t at = index;
    std::unique_ptr<image::ImageReader> reader = take_reader();
    const image::PlanarBitmap pixels =
        to_bitmap(std::as_const(data_.images).values<uint8_t>().data() + at * kImage);
    if (options_.dtype == DType::kBFloat16)
      reader->read(pixels.view(), context, reinterpret_cast<BFloat16*>(components[0]));
    else
      reader->read(pixels.view(), context, reinterpret_cast<float*>(components[0]));
    std::memcpy(components[1], &data_.labels.values<int32_t>()[at], sizeof(int32_t));
    const std::lock_guard lock(mutex_);
    readers_.push_back(std::move(reader));
  }

 private:
  std::unique_ptr<image::ImageReader> take_reader() const {
    {
      const std::lock_guard lock(mutex_);
      if (!readers_.empty()) {
        auto reader = std::move(readers_.back());
        readers_.pop_back();
        return reader;
      }
    }
    return std::make_unique<image::ImageReader>(options_.augmentation);
  }

  CifarBatch data_;
  CifarOptions options_;
  std::vector<TensorType> signature_;
  uint32_t checksum_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<image::ImageReader>> readers_;  // those that no thread is using
};

std::vector<std::string> file_names(int classes, bool train) {
  if (classes == 100) return {train ? "train" : "test"};
  if (!train) return {"test_batch"};
  return {"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5"};
}

Dataset cifar(const std::string& directory, int classes, std::string_view split, const CifarOptions& options,
              SourceLocation where) {
  const std::string place = fmt::format("cifar{} ({})", classes, to_string(where));
  image::validate(options.augmentation, place);
  image::validate_sample_dtype(options.dtype, place);
  return Dataset::from_source(std::make_shared<CifarSource>(read_cifar(directory, classes, split), options),
                              where);
}

void warn_of_equal_batches(const std::vector<CifarBatch>& batches, const std::vector<std::string>& paths) {
  for (size_t i = 0; i < batches.size(); ++i)
    for (size_t k = 0; k < i; ++k) {
      const auto a = batches[k].images.as_bytes(), b = batches[i].images.as_bytes();
      if (a.size() != b.size() || std::memcmp(a.data(), b.data(), a.size()) != 0) continue;
      log_warning(fmt::format(
          "'{}' and '{}' have the same images, which count twice. Is one a copy that took the place of "
          "another file? Unpack the archive anew",
          paths[k], paths[i]));
      return;
    }
}

}  // namespace

CifarBatch parse_cifar_binary(std::span<const std::byte> content, int classes, const std::string& name) {
  const size_t label_bytes = classes == 100 ? 2 : 1, record = label_bytes + kImage;
  if (content.empty() || content.size() % record != 0)
    throw DataError(
        fmt::format("'{}', offset {}: the file is cut off or of another kind: {} bytes are not a number of "
                    "CIFAR-{} records of {}",
                    name, content.size() / record * record, content.size(), classes, record));
  CifarBatch batch = empty_batch(content.size() / record);
  for (size_t i = 0; i * record < content.size(); ++i) {
    const std::byte* at = content.data() + i * record;
    const auto label = std::to_integer<int32_t>(at[label_bytes - 1]);
    require_label(label, classes, fmt::format("'{}', offset {}", name, i * record + label_bytes - 1));
    batch.labels.values<int32_t>()[i] = label;
    std::memcpy(batch.images.data() + i * kImage, at + label_bytes, kImage);
  }
  return batch;
}

CifarBatch parse_cifar_python(std::span<const std::byte> content, int classes, const std::string& name) {
  const std::string key = classes == 100 ? "fine_labels" : "labels";
  const auto [data, labels] = internal::read_pickle(content, key, name);
  if (!data || !labels)
    throw DataError(
        fmt::format("'{}': the pickle's dictionary must have 'data' (an array) and '{}' (a list of integers)",
                    name, key));
  const int64_t samples = labels->size();
  if (data->shape != std::vector<int64_t>{samples, static_cast<int64_t>(kImage)})
    throw DataError(
        fmt::format("'{}': 'data' has the shape [{}], and there are {} labels: [{}, {}] is expected", name,
                    fmt::join(data->shape, ", "), samples, samples, kImage));
  CifarBatch batch = empty_batch(labels->size());
  for (size_t i = 0; i < labels->size(); ++i) {
    require_label((*labels)[i], classes, fmt::format("'{}', sample {}", name, i));
    batch.labels.values<int32_t>()[i] = static_cast<int32_t>((*labels)[i]);
  }
  if (samples > 0) std::memcpy(batch.images.data(), data->bytes.data(), batch.images.bytes());
  return batch;
}

CifarBatch read_cifar(const std::string& directory, int classes, std::string_view split) {
  namespace fs = std::filesystem;
  if (classes != 10 && classes != 100)
    throw InvalidArgument(fmt::format("CIFAR has 10 or 100 classes, not {}", classes));
  if (split != "train" && split != "test")
    throw InvalidArgument(
        fmt::format("cifar{}: split '{}' is unknown; expected 'train' or 'test'", classes, split));
  const auto names = file_names(classes, split == "train");
  const std::string stem = fmt::format("cifar-{}", classes);
  const std::string middle = classes == 10 ? "-batches-" : "-";
  struct Version {
    std::string folder, suffix;
  };
  const Version versions[] = {{stem + middle + (classes == 10 ? "bin" : "binary"), ".bin"},
                              {stem + middle + (classes == 10 ? "py" : "python"), ""}};
  std::string tried;
  for (const Version& version : versions) {
    for (const fs::path& folder : {fs::path(directory), fs::path(directory) / version.folder}) {
      tried +=
          fmt::format("{}'{}'", tried.empty() ? "" : ", ", (folder / (names[0] + version.suffix)).string());
      if (!is_there(folder / (names[0] + version.suffix))) continue;
      std::vector<CifarBatch> parts;
      std::vector<std::string> paths;
      size_t samples = 0;
      for (const std::string& name : names) {
        const std::string path = (folder / (name + version.suffix)).string();
        const std::string content = read_file(path);
        const auto bytes = std::as_bytes(std::span(content.data(), content.size()));
        parts.push_back(version.suffix.empty() ? parse_cifar_python(bytes, classes, path)
                                               : parse_cifar_binary(bytes, classes, path));
        samples += parts.back().labels.elements();
        paths.push_back(path);
      }
      warn_of_equal_batches(parts, paths);
      CifarBatch all = empty_batch(samples);
      size_t done = 0;
      for (const CifarBatch& part : parts) {
        std::memcpy(all.images.data() + done * kImage, part.images.data(), part.images.bytes());
        std::memcpy(all.labels.data() + done * sizeof(int32_t), part.labels.data(), part.labels.bytes());
        done += part.labels.elements();
      }
      return all;
    }
  }
  throw NotFound(
      fmt::format("no {} split of CIFAR-{} in '{}': looked for {}", split, classes, directory, tried));
}

Dataset cifar10(const std::string& directory, std::string_view split, const CifarOptions& options,
                SourceLocation where) {
  return cifar(directory, 10, split, options, where);
}
Dataset cifar100(const std::string& directory, std::string_view split, const CifarOptions& options,
                 SourceLocation where) {
  return cifar(directory, 100, split, options, where);
}

}  // namespace mox::data
