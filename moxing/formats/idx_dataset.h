// IDX files: the format of MNIST and its relatives (http://yann.lecun.com/exdb/mnist/, "the
// IDX file format").
//
// A file is two zero bytes, a type code, the number of dimensions, each dimension as a big-endian 32-bit
// number, and the values in row-major order, big-endian. Plain or gzip-compressed, told apart by content.
// Everything is validated before it is used: magic number, dimensions against the length of the file (nothing
// missing, nothing behind), gzip's checksum.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "runtime/base/source_location.h"
#include "runtime/data/dataset.h"
#include "runtime/tensor/array.h"

namespace mox::data {

// A whole IDX file. Type codes: 0x08 gives uint8, 0x0C int32, 0x0D float32; 0x09 (int8), 0x0B (int16) and
// 0x0E (float64) have no dtype here. Throws NotFound or IoError for the file, DataError (path, offset,
// expected and given) for its content.
Array read_idx(const std::string& path);

// The same from bytes in memory; `name` stands for the path in messages.
Array parse_idx(std::span<const std::byte> content, const std::string& name);

struct IdxOptions {
  // The images' uint8 values as they are, instead of float32 in [0, 1] (value / 255).
  bool raw = false;

  // The shape of one image, for example {1, 28, 28}; it must have as many elements as the file's images.
  // Without it, images are flat: [784].
  std::optional<Shape> image_shape = std::nullopt;

  // Labels must lie in [0, num_classes). Not checked without it.
  std::optional<int64_t> num_classes = std::nullopt;
};

// Elements {image, label}: float32[784] (see IdxOptions) and int32[]. The images' file is uint8 of two
// dimensions or more, the labels' uint8 or int32 of one, with as many labels as images. Both are held in
// memory in the file's own type. Throws as read_idx, and DataError for files that do not fit together or a
// label out of range.
Dataset idx(const std::string& images_path, const std::string& labels_path, IdxOptions options = {},
            SourceLocation where = SourceLocation::current());

// The data set in `directory` under MNIST's names, plain or .gz: {split}-images-idx3-ubyte,
// {split}-labels-idx1-ubyte. `split`: "train" or "t10k" ("test" means t10k). Ten classes unless the options
// say otherwise. NotFound names all the names that were tried.
Dataset mnist(const std::string& directory, std::string_view split, IdxOptions options = {},
              SourceLocation where = SourceLocation::current());

}  // namespace mox::data
