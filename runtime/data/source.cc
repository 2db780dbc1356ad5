#include "runtime/data/source.h"

#include "runtime/base/file.h"

namespace mox {

uint32_t RandomAccessSource::content_checksum(int64_t index) const {
  std::vector<Array> components;
  std::vector<std::byte*> destinations;
  for (const TensorType& type : signature()) destinations.push_back(components.emplace_back(type).data());
  read(index, SampleContext{}, destinations);
  uint32_t checksum = 0;
  for (const Array& component : components) checksum = crc32(component.as_bytes(), checksum);
  return checksum;
}

}  // namespace mox
