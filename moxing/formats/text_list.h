// Many short texts in one block of memory, as the cells of a table and the categories of a column are: a text
// takes its bytes and four more, where a std::string takes 32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace mox::data {

class TextList {
 public:
  TextList() = default;
  // Takes over `bytes`: text i ends at ends[i], where the next one begins, and the last at the
  // end of `bytes`.
  TextList(std::string bytes, std::vector<uint32_t> ends);
  TextList(std::string bytes, std::vector<uint64_t> ends);  // of more than 4 GiB

  void reserve(size_t texts, size_t bytes);
  void add(std::string_view text);  // none of this list

  size_t size() const { return large_ends_.empty() ? ends_.size() : large_ends_.size(); }
  // Valid until another text is added.
  std::string_view operator[](size_t i) const {
    const size_t begin = i == 0 ? 0 : end_of(i - 1);
    return {bytes_.data() + begin, end_of(i) - begin};
  }

 private:
  size_t end_of(size_t i) const { return large_ends_.empty() ? ends_[i] : large_ends_[i]; }

  std::string bytes_;
  std::vector<uint32_t> ends_;
  std::vector<uint64_t> large_ends_;  // instead, beyond 4 GiB
};

// Some texts of a list, one after the other. A view: valid while the list is there and gets no more.
class TextRange {
 public:
  class Iterator {
   public:
    using iterator_category = std::random_access_iterator_tag;
    using value_type = std::string_view;
    using difference_type = std::ptrdiff_t;
    using pointer = void;
    using reference = std::string_view;

    Iterator() = default;
    Iterator(const TextList* list, size_t at) : list_(list), at_(at) {}
    std::string_view operator*() const { return (*list_)[at_]; }
    Iterator& operator+=(difference_type count) {
      at_ += count;
      return *this;
    }
    Iterator& operator-=(difference_type count) { return *this += -count; }
    Iterator& operator++() { return *this += 1; }
    Iterator& operator--() { return *this += -1; }
    Iterator operator++(int) {
      const Iterator before = *this;
      ++at_;
      return before;
    }
    difference_type operator-(const Iterator& other) const {
      return static_cast<difference_type>(at_ - other.at_);
    }
    bool operator==(const Iterator& other) const { return at_ == other.at_; }

   private:
    const TextList* list_ = nullptr;
    size_t at_ = 0;
  };
  using value_type = std::string_view;
  using iterator = Iterator;
  using const_iterator = Iterator;

  TextRange() = default;
  TextRange(const TextList& list, size_t first, size_t count) : list_(&list), first_(first), count_(count) {}

  size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  std::string_view operator[](size_t i) const { return (*list_)[first_ + i]; }
  Iterator begin() const { return {list_, first_}; }
  Iterator end() const { return {list_, first_ + count_}; }
  std::vector<std::string> strings() const { return {begin(), end()}; }
  bool operator==(const TextRange& other) const;  // the same texts

 private:
  const TextList* list_ = nullptr;
  size_t first_ = 0, count_ = 0;
};

}  // namespace mox::data
