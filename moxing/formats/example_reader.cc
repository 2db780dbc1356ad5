#include "moxing/formats/example_reader.h"

#include <cstring>

#include "runtime/text/utf8.h"

namespace mox::data::internal {
namespace {

using WireBytes = std::span<const std::byte>;

enum WireType : uint32_t {
  kVarint = 0,
  kFixed64 = 1,
  kLength = 2,
  kGroup = 3,
  kEndOfGroup = 4,
  kFixed32 = 5
};

// Takes the fields of a message one after the other.
class WireFields {
 public:
  explicit WireFields(WireBytes bytes) : rest_(bytes) {}

  // False at the end, and where the bytes are no message: then `is_damaged` is true.
  bool next() {
    if (rest_.empty() || damaged_) return false;
    uint64_t tag = 0;
    if (!varint(&tag) || tag > UINT32_MAX || tag >> 3 == 0) return fail();
    number = static_cast<uint32_t>(tag >> 3);
    type = static_cast<uint32_t>(tag & 7);
    return type == kGroup ? pass_group(1) : take_value() || fail();
  }
  bool is_damaged() const { return damaged_; }
  bool varint(uint64_t* value) {
    *value = 0;
    for (int shift = 0; shift < 70 && !rest_.empty(); shift += 7) {
      const auto byte = std::to_integer<uint64_t>(rest_.front());
      rest_ = rest_.subspan(1);
      *value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }
  bool at_end() const { return rest_.empty(); }

  uint32_t number = 0, type = 0;
  WireBytes content;  // the value as it stands there

 private:
  bool fail() {
    damaged_ = true;
    return false;
  }
  bool take(uint64_t bytes) {
    if (bytes > rest_.size()) return false;
    content = rest_.first(bytes);
    rest_ = rest_.subspan(bytes);
    return true;
  }
  bool take_value() {
    const WireBytes before = rest_;
    uint64_t value = 0;
    switch (type) {
      case kVarint:
        if (!varint(&value)) return false;
        content = before.first(before.size() - rest_.size());
        return true;
      case kFixed64:
        return take(8);
      case kFixed32:
        return take(4);
      case kLength:
        return varint(&value) && take(value);
      default:
        return false;
    }
  }
  // A field of a kind that messages have no more; nobody looks into it.
  bool pass_group(int depth) {
    constexpr int kDeepest = 100;
    const uint32_t group = number;
    for (;;) {
      uint64_t tag = 0;
      if (depth > kDeepest || !varint(&tag) || tag > UINT32_MAX || tag >> 3 == 0) return fail();
      number = static_cast<uint32_t>(tag >> 3);
      type = static_cast<uint32_t>(tag & 7);
      if (type == kEndOfGroup) {
        if (number != group) return fail();
        type = kGroup;
        return true;
      }
      if (type == kGroup ? !pass_group(depth + 1) : !take_value()) return fail();
    }
  }

  WireBytes rest_;
  bool damaged_ = false;
};

std::string_view text_in(WireBytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The values of a list, one field or many in one; false where they are none.
template <typename Take>
bool pass_list(WireBytes list, ExampleFeature::Kind kind, const Take& take) {
  WireFields fields(list);
  while (fields.next()) {
    if (fields.number != 1) continue;
    switch (kind) {
      case ExampleFeature::Kind::kBytes:
        if (fields.type == kLength) take(fields.content);
        break;
      case ExampleFeature::Kind::kFloats:
        if (fields.type == kFixed32) take(fields.content);
        if (fields.type != kLength) break;
        if (fields.content.size() % sizeof(float) != 0) return false;
        for (size_t at = 0; at < fields.content.size(); at += sizeof(float))
          take(fields.content.subspan(at, sizeof(float)));
        break;
      default: {
        if (fields.type != kVarint && fields.type != kLength) break;
        WireFields numbers(fields.content);
        for (uint64_t number = 0; !numbers.at_end();) {
          if (!numbers.varint(&number)) return false;
          take(std::as_bytes(std::span(&number, 1)));
        }
      }
    }
  }
  return !fields.is_damaged();
}

// Calls `take` with the kind and the content of each list of values in a feature; false where the bytes are
// no message or `take` says so.
template <typename Take>
bool for_each_list(WireBytes entry, const Take& take) {
  WireFields fields(entry);
  while (fields.next()) {
    if (fields.type != kLength || fields.number != 2) continue;
    WireFields lists(fields.content);
    while (lists.next())
      if (lists.type == kLength && lists.number <= 3 &&
          !take(static_cast<ExampleFeature::Kind>(lists.number), lists.content))
        return false;
    if (lists.is_damaged()) return false;
  }
  return !fields.is_damaged();
}

bool read_feature_name(WireBytes entry, std::string_view* name) {
  WireFields fields(entry);
  while (fields.next()) {
    if (fields.type != kLength || fields.number != 1) continue;
    *name = text_in(fields.content);
    if (!is_utf8(*name)) return false;
  }
  return !fields.is_damaged();
}

bool read_feature(WireBytes entry, ExampleFeature* feature) {
  feature->entry = entry;
  size_t lists = 0;
  return read_feature_name(entry, &feature->name) &&
         for_each_list(entry, [&](ExampleFeature::Kind kind, WireBytes list) {
           if (feature->kind != kind) {
             feature->kind = kind;
             feature->count = 0;
             feature->first_list = lists;
           }
           ++lists;
           return pass_list(list, kind, [&](WireBytes) { ++feature->count; });
         });
}

// The values that count, of a feature that has been read.
template <typename Take>
void pass_values(const ExampleFeature& feature, const Take& take) {
  size_t lists = 0;
  for_each_list(feature.entry, [&](ExampleFeature::Kind kind, WireBytes list) {
    return lists++ < feature.first_list || pass_list(list, kind, take);
  });
}

template <typename T, typename Take>
void pass_numbers(const ExampleFeature& feature, const Take& take) {
  pass_values(feature, [&](WireBytes value) {
    T number;
    std::memcpy(&number, value.data(), sizeof number);
    take(number);
  });
}

}  // namespace

void ExampleFeature::for_each_bytes(FunctionRef<void(std::string_view)> take) const {
  pass_values(*this, [&](WireBytes value) { take(text_in(value)); });
}
void ExampleFeature::for_each_float(FunctionRef<void(float)> take) const { pass_numbers<float>(*this, take); }
void ExampleFeature::for_each_integer(FunctionRef<void(int64_t)> take) const {
  pass_numbers<int64_t>(*this, take);
}

bool for_each_feature(WireBytes record, FunctionRef<void(const ExampleFeature&)> take) {
  WireFields example(record);
  while (example.next()) {
    if (example.number != 1 || example.type != kLength) continue;
    WireFields features(example.content);
    while (features.next()) {
      if (features.number != 1 || features.type != kLength) continue;
      ExampleFeature feature;
      if (!read_feature(features.content, &feature)) return false;
      take(feature);
    }
    if (features.is_damaged()) return false;
  }
  return !example.is_damaged();
}

}  // namespace mox::data::internal
