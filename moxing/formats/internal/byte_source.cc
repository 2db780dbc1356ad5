#include "moxing/formats/internal/byte_source.h"

#include <cstring>

#include "runtime/base/error.h"

namespace mox::data::internal {

void MemorySource::read_at(uint64_t offset, std::span<std::byte> out) const {
  MOX_ASSERT(offset <= bytes_.size() && out.size() <= bytes_.size() - offset, "what is read is there");
  if (!out.empty()) std::memcpy(out.data(), bytes_.data() + offset, out.size());
}

void SourceStream::read(std::span<std::byte> out) {
  source_.read_at(at_, out);
  at_ += out.size();
}

}  // namespace mox::data::internal
