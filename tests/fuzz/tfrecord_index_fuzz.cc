// Any bytes are the kept index of a TFRecord file, whose offsets ascend within the file, or none; also behind
// a header with the right checksum, file and number of offsets, which a search would hardly come past.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "moxing/formats/internal/tfrecord_index.h"
#include "runtime/base/crc32c.h"
#include "runtime/base/error.h"
#include "tests/fuzz/harness/input_file.h"

namespace {

constexpr uint64_t kBytes = 200;
constexpr int64_t kModified = 1;

// An index of `offsets` whose header is right: "MOXTFIX1", checksum of what follows it, 0; the file's bytes
// and time, the number of offsets.
std::vector<uint64_t> sealed(std::span<const uint64_t> offsets) {
  std::vector<uint64_t> content{0, 0, kBytes, kModified, offsets.size()};
  std::memcpy(content.data(), "MOXTFIX1", sizeof content[0]);
  content.insert(content.end(), offsets.begin(), offsets.end());
  constexpr size_t kChecked = 12;
  content[1] = mox::crc32c(std::as_bytes(std::span(content)).subspan(kChecked));
  return content;
}

void load(std::span<const std::byte> content) {
  const mox::fuzz::InputFile file(reinterpret_cast<const uint8_t*>(content.data()), content.size());
  const auto offsets = mox::data::internal::load_index(file.path(), {kBytes, kModified});
  if (!offsets) return;
  MOX_ASSERT(offsets->front() == 0 && offsets->back() == kBytes, "from the file's begin to its end");
  for (size_t i = 1; i < offsets->size(); ++i)
    MOX_ASSERT((*offsets)[i] >= (*offsets)[i - 1] + mox::data::internal::kFrameBytes, "a record has a frame");
}

void load_sealed(std::span<const uint64_t> offsets) {
  const std::vector<uint64_t> content = sealed(offsets);
  load(std::as_bytes(std::span(content)));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  load(std::as_bytes(std::span(data, size)));
  std::vector<uint64_t> offsets(size / sizeof(uint64_t));
  if (!offsets.empty()) std::memcpy(offsets.data(), data, offsets.size() * sizeof(uint64_t));
  load_sealed(offsets);
  // A byte an offset: most are within the file.
  offsets.assign(data, data + std::min<size_t>(size, kBytes));
  load_sealed(offsets);
  return 0;
}
