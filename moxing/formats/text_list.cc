#include "moxing/formats/text_list.h"

#include <algorithm>

namespace mox::data {

TextList::TextList(std::string bytes, std::vector<uint32_t> ends)
    : bytes_(std::move(bytes)), ends_(std::move(ends)) {}

TextList::TextList(std::string bytes, std::vector<uint64_t> ends)
    : bytes_(std::move(bytes)), large_ends_(std::move(ends)) {}

void TextList::reserve(size_t texts, size_t bytes) {
  bytes_.reserve(bytes);
  ends_.reserve(texts);
}

void TextList::add(std::string_view text) {
  bytes_ += text;
  if (large_ends_.empty() && bytes_.size() > UINT32_MAX) {
    large_ends_.assign(ends_.begin(), ends_.end());
    ends_ = {};
  }
  if (large_ends_.empty() && bytes_.size() <= UINT32_MAX)
    ends_.push_back(static_cast<uint32_t>(bytes_.size()));
  else
    large_ends_.push_back(bytes_.size());
}

bool TextRange::operator==(const TextRange& other) const {
  return size() == other.size() && std::equal(begin(), end(), other.begin());
}

}  // namespace mox::data
