// Any bytes are either read as safetensors or refused with a DataError.
#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "moxing/checkpoint/safetensors.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"

namespace {

// What a header that moxing has written begins with; the digits of its checksum follow.
constexpr std::string_view kSealed = R"({"__metadata__":{"moxing.header_crc32":")";
constexpr size_t kDigits = 8;

void read(std::string_view content) {
  try {
    const mox::SafetensorsFile file = mox::parse_safetensors(std::as_bytes(std::span(content)), "input");
    size_t bytes = 0;
    for (const mox::NamedArray& tensor : file.tensors) bytes += tensor.value.bytes();
    MOX_ASSERT(bytes <= content.size(), "the tensors come from the file");
    for (size_t i = 1; i < file.tensors.size(); ++i)
      MOX_ASSERT(file.tensors[i - 1].name < file.tensors[i].name, "names are sorted and occur once");
  } catch (const mox::DataError&) {
  }
}

// The length of the header and the header, with the checksum that it should have, if it has a place for one.
std::string with_length(std::string_view header) {
  std::string file(8, '\0');
  for (size_t i = 0; i < 8; ++i) file[i] = static_cast<char>(uint64_t{header.size()} >> (8 * i));
  file.append(header);
  if (!header.starts_with(kSealed) || header.size() < kSealed.size() + kDigits) return file;
  const size_t digits = 8 + kSealed.size();
  const auto bytes = std::as_bytes(std::span(file));
  const uint32_t sum = mox::crc32(bytes.subspan(digits + kDigits), mox::crc32(bytes.first(digits)));
  return file.replace(digits, kDigits, fmt::format("{:08x}", sum));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view content(reinterpret_cast<const char*>(data), size);
  read(content);
  // And as a header, up to the last brace, with data: the header's length and checksum, which are hard to
  // hit, are made to fit.
  const size_t header = content.rfind('}') + 1;  // 0 without a brace
  read(with_length(content.substr(0, header)).append(content.substr(header)));
  return 0;
}
