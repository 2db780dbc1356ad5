// CIFAR-10 and CIFAR-100 (https://www.cs.toronto.edu/~kriz/cifar.html): 32 x 32 colour images, in the binary
// version (data_batch_1.bin ...; train.bin) and the Python version (data_batch_1 ...; train: pickles, of
// which nothing is executed).
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "moxing/image/augmentation.h"
#include "runtime/base/source_location.h"
#include "runtime/data/dataset.h"
#include "runtime/tensor/array.h"

namespace mox::data {

// Images as uint8 [samples, 3, 32, 32] and labels as int32 [samples].
struct CifarBatch {
  Array images, labels;
};

// `classes` is 10 or 100 (the fine labels, of the records with two). `name` stands for the path in messages.
// Throws DataError (path, offset) for a length that is no multiple of a record's, or a label out of range.
CifarBatch parse_cifar_binary(std::span<const std::byte> content, int classes, const std::string& name);
// The dictionary's keys "data" (uint8 [samples, 3072]) and "labels" (or "fine_labels"); others
// are passed over.
CifarBatch parse_cifar_python(std::span<const std::byte> content, int classes, const std::string& name);

struct CifarOptions {
  image::Augmentation augmentation{.height = 32, .width = 32};
  DType dtype = DType::kFloat32;  // of the images, or kBFloat16: see ImageOptions::dtype
};

// The whole of one split ("train" or "test") from `directory`, or from its usual sub-directory
// (cifar-10-batches-bin, cifar-10-batches-py, cifar-100-binary, cifar-100-python). The binary version is
// taken if both are there. Throws NotFound, naming what was looked for, and DataError.
CifarBatch read_cifar(const std::string& directory, int classes, std::string_view split);

// Elements {image, label}: options.dtype[channels, height, width] and int32[]. All images are held in memory.
Dataset cifar10(const std::string& directory, std::string_view split, const CifarOptions& options = {},
                SourceLocation where = SourceLocation::current());
Dataset cifar100(const std::string& directory, std::string_view split, const CifarOptions& options = {},
                 SourceLocation where = SourceLocation::current());

}  // namespace mox::data
