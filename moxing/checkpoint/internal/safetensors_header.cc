#include "moxing/checkpoint/internal/safetensors_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <nlohmann/json.hpp>
#include <set>

#include "moxing/checkpoint/internal/checksum_text.h"
#include "moxing/json/many_blanks.h"
#include "runtime/base/error.h"

namespace mox::internal {
namespace {

constexpr std::string_view kMetadataName = "__metadata__";
constexpr std::string_view kOwnKeys = "moxing.";
constexpr std::string_view kVersionKey = "moxing.version";
constexpr std::string_view kHeaderKey = "moxing.header_crc32";
constexpr std::string_view kTensorKeyPrefix = "moxing.crc32.";
// What a header written here begins with; the digits of the header's checksum follow.
constexpr std::string_view kSealedPrefix = R"({"__metadata__":{"moxing.header_crc32":")";
constexpr uint64_t kDataAlignment = 64;
constexpr size_t kMaxRank = 64;
constexpr std::string_view kTensorKeys[] = {"dtype", "shape", "data_offsets"};

struct TypeName {
  DType dtype;
  std::string_view name;
};
constexpr TypeName kTypeNames[] = {{DType::kFloat32, "F32"}, {DType::kBFloat16, "BF16"},
                                   {DType::kInt32, "I32"},   {DType::kInt64, "I64"},
                                   {DType::kUInt8, "U8"},    {DType::kBool, "BOOL"}};

std::string length_bytes(uint64_t length) {
  std::string text(kLengthBytes, '\0');
  for (size_t i = 0; i < kLengthBytes; ++i) text[i] = static_cast<char>(length >> (8 * i));
  return text;
}

std::string quoted(std::string_view text, std::string_view what) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception&) {
    throw InvalidArgument(
        fmt::format("a safetensors file takes UTF-8 text, but a {} of {} bytes is not", what, text.size()));
  }
}

// The checksum of a header whose own checksum has its digits right behind kSealedPrefix.
uint32_t header_crc32(std::string_view header) {
  uint32_t crc = crc32_of(length_bytes(header.size()));
  crc = crc32_of(header.substr(0, kSealedPrefix.size()), crc);
  return crc32_of(header.substr(kSealedPrefix.size() + kChecksumDigits), crc);
}

// Reads the header's JSON, which has one fixed form, without building a document: a wrong value stops the
// parser where it stands, and a key that occurs twice is seen.
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  struct RawTensor {
    std::string name;
    std::string dtype{};
    std::vector<uint64_t> shape{};
    std::array<uint64_t, 2> offsets{};
    unsigned char offset_count = 0, keys = 0;  // the keys that were there, each a bit
  };
  std::deque<RawTensor> tensors;  // whose growth takes no second copy
  std::map<std::string, std::string> metadata;
  std::string error;

  bool start_object(size_t) override {
    switch (place_) {
      case Place::kBegin:
        return go(Place::kRoot);
      case Place::kRoot:
        if (name_ == kMetadataName) return go(Place::kMetadata);
        tensors.push_back({.name = name_});
        return go(Place::kTensor);
      default:
        return unexpected("an object");
    }
  }
  bool end_object() override {
    if (place_ == Place::kRoot) return go(Place::kEnd);
    if (place_ == Place::kTensor && tensors.back().keys != (1 << std::size(kTensorKeys)) - 1)
      return fail(fmt::format("tensor '{}' lacks one of \"dtype\", \"shape\" and \"data_offsets\"", name_));
    return go(Place::kRoot);
  }
  bool key(std::string& text) override {
    if (place_ == Place::kRoot) {
      name_ = text;
      return names_.insert(text).second || fail(fmt::format("the name '{}' occurs twice", text));
    }
    key_ = text;
    if (place_ == Place::kMetadata)
      return metadata.emplace(text, "").second ||
             fail(fmt::format("the metadata key '{}' occurs twice", text));
    const auto known = std::ranges::find(kTensorKeys, text);
    if (known == std::end(kTensorKeys))
      return fail(fmt::format("tensor '{}' has the unknown key '{}'", name_, text));
    const unsigned bit = 1U << (known - std::begin(kTensorKeys));
    if (tensors.back().keys & bit)
      return fail(fmt::format("tensor '{}' has the key '{}' twice", name_, text));
    tensors.back().keys |= bit;
    return true;
  }
  bool start_array(size_t) override {
    if (place_ == Place::kTensor && key_ == "shape") return go(Place::kShape);
    if (place_ == Place::kTensor && key_ == "data_offsets") return go(Place::kOffsets);
    return unexpected("a list");
  }
  bool end_array() override {
    if (place_ == Place::kOffsets && tensors.back().offset_count != 2)
      return fail(
          fmt::format("tensor '{}' has {} data_offsets instead of 2", name_, tensors.back().offset_count));
    return go(Place::kTensor);
  }
  bool number_unsigned(uint64_t value) override {
    if (place_ == Place::kShape) {
      tensors.back().shape.push_back(value);
      return tensors.back().shape.size() <= kMaxRank ||
             fail(fmt::format("tensor '{}' has more than {} dimensions", name_, kMaxRank));
    }
    if (place_ == Place::kOffsets) {
      RawTensor& tensor = tensors.back();
      if (tensor.offset_count == tensor.offsets.size())
        return fail(fmt::format("tensor '{}' has more than 2 data_offsets", name_));
      tensor.offsets[tensor.offset_count++] = value;
      return true;
    }
    return unexpected("a number");
  }
  bool string(std::string& text) override {
    if (place_ == Place::kMetadata) {
      metadata[key_] = text;
      return true;
    }
    if (place_ != Place::kTensor || key_ != "dtype") return unexpected("a string");
    tensors.back().dtype = text;
    return true;
  }
  bool number_integer(int64_t) override { return unexpected("a negative number"); }
  bool number_float(double, const std::string&) override {
    return unexpected("a number that is no 64-bit integer");
  }
  bool boolean(bool) override { return unexpected("a boolean"); }
  bool null() override { return unexpected("null"); }
  bool binary(binary_t&) override { return unexpected("binary data"); }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception&) override {
    return fail(fmt::format("it is not valid JSON at byte {} of the file", kLengthBytes + position));
  }

 private:
  enum class Place { kBegin, kRoot, kMetadata, kTensor, kShape, kOffsets, kEnd };

  bool go(Place place) {
    place_ = place;
    return true;
  }
  bool fail(std::string text) {
    error = std::move(text);
    return false;
  }
  bool unexpected(std::string_view what) {
    if (place_ == Place::kBegin) return fail(fmt::format("it is {} instead of an object", what));
    if (place_ == Place::kRoot)
      return fail(fmt::format("the entry '{}' is {} instead of an object", name_, what));
    if (place_ == Place::kMetadata)
      return fail(fmt::format("the metadata key '{}' is {}, not a string", key_, what));
    return fail(fmt::format("'{}' of tensor '{}' cannot be {}", key_, name_, what));
  }

  Place place_ = Place::kBegin;
  std::string name_;  // of the entry of the root
  std::string key_;   // inside of that entry
  std::set<std::string> names_;
};

// Validates one tensor by itself.
TensorEntry checked_entry(const HeaderReader::RawTensor& raw, uint64_t data_begin, const std::string& path) {
  const auto fail = [&](const std::string& why) -> DataError {
    return DataError(fmt::format("'{}': tensor '{}': {}", path, raw.name, why));
  };
  TensorEntry entry;
  entry.name = raw.name;
  entry.begin = raw.offsets[0];
  entry.end = raw.offsets[1];
  const auto* type = std::find_if(std::begin(kTypeNames), std::end(kTypeNames),
                                  [&](const TypeName& known) { return known.name == raw.dtype; });
  if (type == std::end(kTypeNames))
    throw fail(
        fmt::format("its dtype is '{}', but only F32, BF16, I32, I64, U8 and BOOL can be read; convert it "
                    "before (in PyTorch: tensor.float())",
                    raw.dtype));
  entry.type.dtype = type->dtype;
  std::vector<int64_t> dims;
  for (uint64_t dim : raw.shape) {
    if (dim > static_cast<uint64_t>(Shape::kMostElements))
      throw fail(fmt::format("its shape has an extent of {}", dim));
    dims.push_back(dim);
  }
  try {
    entry.type.shape = Shape(std::move(dims));
  } catch (const InvalidArgument& error) {
    throw fail(error.what());
  }
  if (entry.begin > entry.end || entry.type.bytes() != entry.end - entry.begin)
    throw fail(fmt::format("its data_offsets [{}, {}] (the data begins at byte {}) do not fit {}",
                           entry.begin, entry.end, data_begin, to_string(entry.type)));
  return entry;
}

// The tensors must cover the data once, without gaps.
void check_coverage(const std::vector<TensorEntry>& entries, uint64_t data_begin, uint64_t data_bytes,
                    const std::string& path) {
  uint64_t covered = 0;
  for (const TensorEntry& entry : entries) {
    if (entry.begin != covered)
      throw DataError(
          fmt::format("'{}': tensor '{}' begins at byte {} of the file, but the data before it ends at "
                      "byte {}: {}",
                      path, entry.name, data_begin + entry.begin, data_begin + covered,
                      entry.begin < covered ? "two tensors overlap" : "there is a gap"));
    if (entry.end > data_bytes)
      throw DataError(fmt::format(
          "'{}' is truncated: tensor '{}' needs bytes {} to {}, but the file ends at byte {}", path,
          entry.name, data_begin + entry.begin, data_begin + entry.end, data_begin + data_bytes));
    covered = entry.end;
  }
  if (covered != data_bytes)
    throw DataError(
        fmt::format("'{}' has {} bytes behind its last tensor, from byte {} on, that belong to none", path,
                    data_bytes - covered, data_begin + covered));
}

// Takes our own keys out of the metadata and verifies the header's checksum. A file has all of the
// keys or none.
void take_checksums(std::string_view text, SafetensorsHeader* header, const std::string& path) {
  std::map<std::string, std::string> own;
  for (auto it = header->metadata.lower_bound(std::string(kOwnKeys));
       it != header->metadata.end() && it->first.starts_with(kOwnKeys);) {
    own.insert(*it);
    it = header->metadata.erase(it);
  }
  const bool sealed = text.starts_with(kSealedPrefix);
  if (own.empty() && !sealed) return;
  const auto damaged = [&](std::string_view why) {
    return DataError(fmt::format("'{}': the header (bytes 0 to {}) is damaged: {}", path,
                                 kLengthBytes + text.size(), why));
  };
  if (!sealed) throw damaged("its checksum is not where moxing writes it");
  const auto stored = parse_checksum(own[std::string(kHeaderKey)]);
  header->crc32 = header_crc32(text);
  if (!stored || *stored != header->crc32)
    throw damaged(fmt::format("its checksum is {}, but it says '{}'", checksum_text(header->crc32),
                              own[std::string(kHeaderKey)]));
  for (TensorEntry& entry : header->entries) {
    entry.crc32 = parse_checksum(own[std::string(kTensorKeyPrefix) + entry.name]);
    if (!entry.crc32) throw damaged(fmt::format("it has no checksum of tensor '{}'", entry.name));
  }
  if (own[std::string(kVersionKey)] != "1") throw damaged("it has another moxing.version than 1");
  header->checksummed = true;
}

// What torch.save writes: a ZIP archive, or before PyTorch 1.6 a pickle.
bool is_of_torch_save(std::string_view first_bytes) {
  return first_bytes.starts_with("PK\x03\x04") || first_bytes.starts_with("\x80\x02\x8a\x0a");
}

}  // namespace

std::string build_header(std::span<const TensorEntry> entries,
                         const std::map<std::string, std::string>& metadata, uint32_t* crc32) {
  std::string header =
      fmt::format(R"({}{}","{}":"1")", kSealedPrefix, std::string(kChecksumDigits, '0'), kVersionKey);
  for (const TensorEntry& entry : entries)
    header += fmt::format(R"(,{}:"{}")", quoted(std::string(kTensorKeyPrefix) + entry.name, "tensor name"),
                          checksum_text(entry.crc32.value()));
  for (const auto& [key, value] : metadata) {
    if (key.starts_with(kOwnKeys))
      throw InvalidArgument(
          fmt::format("the metadata key '{}' begins with '{}', which is kept for checksums", key, kOwnKeys));
    header += fmt::format(",{}:{}", quoted(key, "metadata key"), quoted(value, "metadata value"));
  }
  header += "}";
  for (const TensorEntry& entry : entries) {
    if (entry.name == kMetadataName)
      throw InvalidArgument(fmt::format("a safetensors file cannot hold a tensor named '{}'", kMetadataName));
    const auto* type = std::find_if(std::begin(kTypeNames), std::end(kTypeNames),
                                    [&](const TypeName& known) { return known.dtype == entry.type.dtype; });
    std::string dims;
    for (int64_t dim : entry.type.shape) dims += fmt::format("{}{}", dims.empty() ? "" : ",", dim);
    header += fmt::format(R"(,{}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                          quoted(entry.name, "tensor name"), type->name, dims, entry.begin, entry.end);
  }
  header += "}";
  const size_t unpadded = kLengthBytes + header.size();
  header.append((kDataAlignment - unpadded % kDataAlignment) % kDataAlignment, ' ');
  if (header.size() > kMaxHeaderBytes)
    throw InvalidArgument(
        fmt::format("the header of {} tensors takes {} bytes; a safetensors file has room for {}",
                    entries.size(), header.size(), kMaxHeaderBytes));
  *crc32 = header_crc32(header);
  header.replace(kSealedPrefix.size(), kChecksumDigits, checksum_text(*crc32));
  return length_bytes(header.size()) + header;
}

uint64_t parse_header_length(std::string_view first_bytes, uint64_t file_bytes, const std::string& path) {
  if (file_bytes < kLengthBytes || first_bytes.size() < kLengthBytes)
    throw DataError(
        fmt::format("'{}' is no safetensors file: it has {} bytes, the header's length alone takes {}", path,
                    file_bytes, kLengthBytes));
  uint64_t length = 0;
  for (size_t i = kLengthBytes; i-- > 0;) length = length << 8 | static_cast<unsigned char>(first_bytes[i]);
  if (length > kMaxHeaderBytes && is_of_torch_save(first_bytes))
    throw DataError(fmt::format(
        "'{0}' is what PyTorch's torch.save writes, and no safetensors file. Write its state as one, "
        "in Python: safetensors.torch.save_file(torch.load('{0}', map_location='cpu'), "
        "'FILE.safetensors')",
        path));
  if (length > kMaxHeaderBytes)
    throw DataError(
        fmt::format("'{}' is no safetensors file, or it is damaged: bytes 0 to 8 give a header of {} "
                    "bytes, more than the {} allowed",
                    path, length, kMaxHeaderBytes));
  if (length > file_bytes - kLengthBytes)
    throw DataError(
        fmt::format("'{}' is truncated or damaged: bytes 0 to 8 give a header of {} bytes, but the file "
                    "has {}",
                    path, length, file_bytes));
  return length;
}

SafetensorsHeader parse_header(std::string_view text, uint64_t data_bytes, const std::string& path) {
  const auto invalid = [&](std::string_view why) {
    return DataError(fmt::format("'{}': the header (bytes {} to {}) cannot be read: {}", path, kLengthBytes,
                                 kLengthBytes + text.size(), why));
  };
  if (!text.starts_with('{')) throw invalid("it does not begin with '{'");
  // The JSON parser takes a zero byte for the end of its input.
  if (const size_t zero = text.find('\0'); zero != text.npos)
    throw invalid(fmt::format("it has a zero byte at byte {} of the file", kLengthBytes + zero));
  // Behind the last brace there may be any number of them, to align the data.
  const std::string_view json = text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
  if (has_many_blanks(json))
    throw invalid(
        "it has thousands of blanks or ends of lines in a row, which no writer of such files leaves there");
  HeaderReader reader;
  if (!nlohmann::json::sax_parse(json.begin(), json.end(), &reader)) throw invalid(reader.error);

  SafetensorsHeader header;
  header.metadata = std::move(reader.metadata);
  const uint64_t data_begin = kLengthBytes + text.size();
  header.entries.reserve(reader.tensors.size());
  for (const auto& raw : reader.tensors) header.entries.push_back(checked_entry(raw, data_begin, path));
  std::sort(header.entries.begin(), header.entries.end(), [](const TensorEntry& a, const TensorEntry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  take_checksums(text, &header, path);
  check_coverage(header.entries, data_begin, data_bytes, path);
  return header;
}

}  // namespace mox::internal
