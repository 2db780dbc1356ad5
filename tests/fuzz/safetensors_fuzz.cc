// Any bytes are either read as safetensors or refused with a DataError.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "moxing/checkpoint/safetensors.h"
#include "runtime/base/error.h"

namespace {

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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view content(reinterpret_cast<const char*>(data), size);
  read(content);
  // And as a header, up to the last brace, with data: the header's length, which is hard to hit, is
  // made to fit.
  const size_t header = content.rfind('}') + 1;  // 0 without a brace
  std::string file(8, '\0');
  for (size_t i = 0; i < 8; ++i) file[i] = static_cast<char>(uint64_t{header} >> (8 * i));
  read(file.append(content));
  return 0;
}
