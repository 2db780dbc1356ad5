// Tensors in a safetensors file, the format that PyTorch, JAX and MLX users read.
//
// Format (https://github.com/huggingface/safetensors#format): 8 bytes, the length of the header,
// little-endian; the header, JSON {"NAME": {"dtype": ..., "shape": [...], "data_offsets": [begin, end]},
// ...}, padded with spaces; the tensors' bytes, row-major, little-endian, without gaps. An optional entry
// "__metadata__" maps strings to strings.
//
// Types: F32, BF16, I32, I64, U8 and BOOL, that is, every DType.
//
// Checksums: a file written here carries, under metadata keys that begin with "moxing.", a CRC-32 of every
// tensor and a CRC-32 of the header (its length included, the checksum's own eight digits left out). Any
// single changed byte of such a file is therefore detected. Other readers ignore these keys; files of other
// writers have none, which `SafetensorsFile::checksummed` tells.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "moxing/checkpoint/named_array.h"

namespace mox {

// Identifies the content of a file written here: the header holds the checksums of all tensors, so the
// checksum of the header stands for the whole file.
struct SafetensorsStamp {
  uint64_t bytes = 0;         // size of the file
  uint32_t header_crc32 = 0;  // 0 for a file without checksums
  bool operator==(const SafetensorsStamp&) const = default;
};

struct SafetensorsFile {
  std::vector<NamedArray> tensors;              // sorted by name
  std::map<std::string, std::string> metadata;  // without the keys that begin with "moxing."
  // true: written here, and every byte was verified; false: there was nothing to verify
  bool checksummed = false;
  SafetensorsStamp stamp;
};

// Writes `tensors` to `path`, atomically and durably (see write_file_atomically). In the file they are
// ordered by element size, largest first, then by name, so that every tensor is aligned to its element size;
// the data begins at a multiple of 64 bytes. The same tensors and metadata give the same bytes, whatever
// order they are passed in.
//
// Throws InvalidArgument for an undefined array, a name that occurs twice, that is not UTF-8 or that is
// "__metadata__", and for a metadata key that begins with "moxing."; IoError if the system refuses.
SafetensorsStamp write_safetensors(const std::string& path, std::span<const NamedArray> tensors,
                                   const std::map<std::string, std::string>& metadata = {});

// Reads a file. The whole header is validated against the size of the file before a tensor is allocated.
//
// Throws NotFound if there is no such file, IoError if it cannot be read, and DataError, which names the
// file, the tensor and the offset, if it is not a complete, consistent file of the types above, or if a
// checksum does not match.
SafetensorsFile read_safetensors(const std::string& path);

// A file that stays open, of which any part of a tensor is read by itself: what is larger than memory, or of
// which a process needs a slice.
//
// Threads: `read` and `verify` from any number at the same time.
class SafetensorsReader {
 public:
  struct Tensor {
    std::string name;
    TensorType type;
  };

  // Reads and validates the header. Throws what read_safetensors throws for one.
  explicit SafetensorsReader(const std::string& path);
  ~SafetensorsReader();
  SafetensorsReader(SafetensorsReader&&) noexcept;

  const std::string& path() const { return path_; }
  const std::vector<Tensor>& tensors() const { return tensors_; }  // sorted by name
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const SafetensorsStamp& stamp() const { return stamp_; }
  bool checksummed() const { return checksummed_; }

  // The bytes of tensor number `tensor` from `offset` on, as they are in the file: nothing is checked. Throws
  // InvalidArgument for bytes that the tensor does not have, IoError, and DataError if the file
  // has become shorter.
  void read(size_t tensor, uint64_t offset, std::span<std::byte> out) const;
  // Reads all of it and compares the checksums. Throws DataError for a tensor that is damaged; a file without
  // checksums passes.
  void verify() const;

 private:
  struct Opened;
  std::string path_;
  std::vector<Tensor> tensors_;
  std::map<std::string, std::string> metadata_;
  SafetensorsStamp stamp_;
  bool checksummed_ = false;
  std::unique_ptr<Opened> opened_;
};

// The same as read_safetensors for a file's content in memory; `path` is the name to use in errors.
SafetensorsFile parse_safetensors(std::span<const std::byte> content, const std::string& path);

}  // namespace mox
