#include "moxing/json/bounded_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "runtime/base/error.h"

namespace mox {
namespace {

constexpr size_t kAllowedTimes = 16, kAllowedBeside = 1 << 20;

// What a value takes in nlohmann::json: 16 bytes in a list, and more while the list grows and is copied from;
// a list or an object of its own; the node of a key. With what the allocator adds to each block.
constexpr size_t kValue = 64, kContainer = 64, kKey = 96, kText = 48;

class MemoryOfJson : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit MemoryOfJson(size_t allowed) : allowed_(allowed) {}
  bool is_exceeded() const { return bytes_ > allowed_; }

  bool null() override { return add(kValue); }
  bool boolean(bool) override { return add(kValue); }
  bool number_integer(int64_t) override { return add(kValue); }
  bool number_unsigned(uint64_t) override { return add(kValue); }
  bool number_float(double, const std::string&) override { return add(kValue); }
  bool string(std::string& text) override { return add(kValue + kText + text.size()); }
  bool binary(binary_t&) override { return add(kValue); }
  bool start_object(size_t) override { return add(kValue + kContainer); }
  bool key(std::string& text) override { return add(kKey + text.size()); }
  bool end_object() override { return true; }
  bool start_array(size_t) override { return add(kValue + kContainer); }
  bool end_array() override { return true; }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

 private:
  bool add(size_t bytes) {
    bytes_ += bytes;
    return !is_exceeded();
  }
  const size_t allowed_;
  size_t bytes_ = 0;
};

void require_within(size_t allowed, std::string_view text, const std::string& name) {
  MemoryOfJson memory(allowed);
  nlohmann::json::sax_parse(text, &memory);
  if (memory.is_exceeded())
    throw DataError(fmt::format(
        "'{}' is not read: the values of its {} bytes of JSON would take more than {} bytes of memory, which "
        "no file of this kind does",
        name, text.size(), allowed));
}

}  // namespace

void require_bounded_json(std::string_view text, const std::string& name) {
  require_within(kAllowedTimes * text.size() + kAllowedBeside, text, name);
}

void require_bounded_json(std::string_view text, const std::string& name, size_t times) {
  constexpr size_t kSmall = 16 << 10;
  require_within(times * std::max(text.size(), kSmall), text, name);
}

}  // namespace mox
