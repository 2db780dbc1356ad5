// How the elements of one value lie in memory. The logical shape never changes; kernels agree on a layout at
// compile time, and the compiler puts a conversion wherever producer and consumer differ.
//
// Three kinds:
//  - plain: row-major, as arrays and checkpoints are;
//  - blocked: strides over the outer dimensions plus inner blocks (NHWC has no inner block; nChw16c has one
//    of 16 on dimension 1), with extents padded up to whole blocks. Padding always holds zeros; a kernel that
//    writes a padded layout keeps it so;
//  - opaque: bytes that only the kernels that agreed on them understand (Winograd weights, a pooling
//    workspace).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/tensor/array.h"

namespace mox {

class Layout {
 public:
  struct Block {
    int dimension;
    int64_t size;
    bool operator==(const Block&) const = default;
  };

  Layout() = default;
  static Layout plain(const TensorType& type);
  // `strides` in elements, one a dimension, of the outer (block) index; `blocks` from the outermost inner
  // block to the innermost. Becomes plain if it is row-major without blocks or padding.
  static Layout blocked(const TensorType& type, std::vector<int64_t> padded_extents,
                        std::vector<int64_t> strides, std::vector<Block> blocks);
  // `description` is compared by `key`: two opaque layouts are equal if key and size are.
  static Layout opaque(size_t bytes, std::string key, std::shared_ptr<const void> description);

  bool is_plain() const { return kind_ == Kind::kPlain; }
  bool is_opaque() const { return kind_ == Kind::kOpaque; }
  bool is_padded() const { return padded_; }
  size_t bytes() const { return bytes_; }

  const std::vector<int64_t>& padded_extents() const { return padded_extents_; }
  const std::vector<int64_t>& strides() const { return strides_; }
  const std::vector<Block>& blocks() const { return blocks_; }
  const std::shared_ptr<const void>& description() const { return description_; }
  const std::string& key() const { return key_; }

  bool operator==(const Layout& other) const;
  // "plain", "acdb" (dimension letters from the outermost), "aBcd16b" (oneDNN's names), "opaque(wino)".
  std::string to_string() const;

 private:
  enum class Kind { kPlain, kBlocked, kOpaque };
  Kind kind_ = Kind::kPlain;
  bool padded_ = false;
  size_t bytes_ = 0;
  std::vector<int64_t> padded_extents_, strides_;
  std::vector<Block> blocks_;
  std::string key_;
  std::shared_ptr<const void> description_;
};

}  // namespace mox
