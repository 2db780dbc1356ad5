// The manifest of a directory of kept images: which image lies where in images.bin.
//
// Lines of text: a title; the identity of the images; an entry each, "index offset bytes width height
// label_bytes checksum"; "checksum N", the CRC-32C of all that is above.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mox::data::internal {

struct KeptEntry {
  uint64_t offset = 0;
  uint64_t bytes = 0;                      // of the image, which follows its label
  int width = 0, height = 0;               // of pixels; 0: the bytes are an encoded image
  uint32_t label_bytes = 0, checksum = 0;  // over label and image
  uint64_t end() const { return offset + label_bytes + bytes; }
};

// One for each image; empty for those that are not kept.
using KeptEntries = std::vector<std::optional<KeptEntry>>;

std::string manifest_text(const std::string& identity, const KeptEntries& entries);

// The entries for `images` images that lie within a file of `file_bytes`. `*problem` says why there are none,
// if so: the text is damaged, or of images of another identity.
KeptEntries parse_manifest(std::string_view text, const std::string& identity, size_t images,
                           uint64_t file_bytes, std::string* problem);

}  // namespace mox::data::internal
