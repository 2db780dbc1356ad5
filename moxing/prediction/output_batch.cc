#include "moxing/prediction/output_batch.h"

#include <fmt/format.h>

#include <cstring>
#include <type_traits>

#include "runtime/base/error.h"

namespace mox {
namespace {

class Writer {
 public:
  template <typename T>
  void number(T value) {
    static_assert(std::is_arithmetic_v<T>);
    bytes.append(reinterpret_cast<const char*>(&value), sizeof(T));
  }
  void text(std::string_view value) {
    number(value.size());
    bytes.append(value);
  }
  std::string bytes;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}
  template <typename T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }
  std::string_view text() { return take(number<uint64_t>()); }
  std::string_view take(size_t size) {
    if (size > rest_.size()) throw DataError("a batch of predictions from another rank is cut off");
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }
  bool at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

TensorType read_type(Reader& reader) {
  TensorType type{.dtype = dtype_from_string(reader.text()), .shape = {}};
  std::vector<int64_t> dims(reader.number<uint8_t>());
  for (int64_t& extent : dims) extent = reader.number<int64_t>();
  type.shape = Shape(dims);
  return type;
}

}  // namespace

const Array& OutputBatch::array(std::string_view name) const {
  std::string names;
  for (const auto& [known, value] : *this) {
    if (known == name) return value;
    names += (names.empty() ? "" : ", ") + known;
  }
  throw NotFound(fmt::format("output_info has no '{}'; it has: {}", name, names));
}

std::string OutputBatch::to_bytes() const {
  Writer writer;
  writer.number(size());
  for (const auto& [name, value] : *this) {
    writer.text(name);
    writer.text(to_string(value.dtype()));
    writer.number(static_cast<uint8_t>(value.shape().rank()));
    for (int axis = 0; axis < value.shape().rank(); ++axis) writer.number(value.shape()[axis]);
    const auto bytes = value.as_bytes();
    writer.text({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  writer.number(sample_names.size());
  for (const std::string& name : sample_names) writer.text(name);
  return std::move(writer.bytes);
}

OutputBatch OutputBatch::from_bytes(std::string_view bytes) {
  Reader reader(bytes);
  OutputBatch batch;
  for (auto values = reader.number<uint64_t>(); values > 0; --values) {
    const std::string name(reader.text());
    const TensorType type = read_type(reader);
    const std::string_view content = reader.text();
    batch.emplace_back(name, Array::from_bytes(type, std::as_bytes(std::span(content))));
  }
  for (auto names = reader.number<uint64_t>(); names > 0; --names)
    batch.sample_names.emplace_back(reader.text());
  if (!reader.at_end()) throw DataError("a batch of predictions from another rank has too many bytes");
  return batch;
}

}  // namespace mox
