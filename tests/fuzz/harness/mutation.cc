#include "tests/fuzz/harness/mutation.h"

#include <algorithm>
#include <cstddef>
#include <random>
#include <string_view>

namespace mox::fuzz {
namespace {

constexpr size_t kLongest = 64 << 10;

constexpr uint64_t kNumbers[] = {0,          1,           0x7f,       0x80,       0xff,
                                 0x7fff,     0x8000,      0xffff,     0x7fffffff, 0x80000000,
                                 0xffffffff, 0x100000000, 1ULL << 62, ~0ULL >> 1, ~0ULL};
constexpr std::string_view kDigits[] = {"0",
                                        "-1",
                                        "1e999",
                                        "2147483648",
                                        "4294967296",
                                        "9223372036854775807",
                                        "18446744073709551616",
                                        "99999999999999999999999",
                                        "0.5",
                                        "nan"};

class Mutation {
 public:
  Mutation(std::string content, const std::string& other, uint64_t seed)
      : content_(std::move(content)), other_(other), random_(seed) {}

  std::string made() {
    for (size_t changes = 1 + below(6); changes > 0; --changes) change();
    if (content_.size() > kLongest) content_.resize(kLongest);
    return std::move(content_);
  }

 private:
  size_t below(size_t bound) { return bound == 0 ? 0 : static_cast<size_t>(random_() % bound); }
  size_t place() { return below(content_.size() + 1); }
  size_t length() { return 1 + below(size_t{1} << below(12)); }

  void change() {
    switch (below(9)) {
      case 0:
        if (!content_.empty()) flip(content_[below(content_.size())]);
        break;
      case 1:
        if (!content_.empty()) content_[below(content_.size())] = static_cast<char>(random_());
        break;
      case 2:
        insert(std::string(1, static_cast<char>(random_())));
        break;
      case 3:
        erase();
        break;
      case 4:
        insert(piece_of(content_));
        break;
      case 5:
        insert(piece_of(other_));
        break;
      case 6:
        write_number();
        break;
      case 7:
        write_digits();
        break;
      default:
        content_.resize(place());
    }
  }

  // One draw a line: the order of a call's arguments is another with each compiler.
  std::string piece_of(const std::string& text) {
    const size_t begin = below(text.size() + 1);
    return text.substr(begin, length());
  }
  void insert(const std::string& piece) { content_.insert(place(), piece); }
  void erase() {
    const size_t begin = place();
    content_.erase(begin, length());
  }

  void flip(char& byte) { byte = static_cast<char>(byte ^ (1 << below(8))); }

  void write_number() {
    const size_t bytes = size_t{1} << below(4);
    if (content_.size() < bytes) return;
    const size_t at = below(content_.size() - bytes + 1);
    const uint64_t number = kNumbers[below(std::size(kNumbers))];
    const bool is_big_endian = below(2) == 0;
    for (size_t i = 0; i < bytes; ++i)
      content_[at + (is_big_endian ? bytes - 1 - i : i)] = static_cast<char>(number >> (8 * i));
  }

  // In the place of digits from a point on, if there are some.
  void write_digits() {
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    const auto begin =
        std::find_if(content_.begin() + static_cast<ptrdiff_t>(place()), content_.end(), is_digit);
    if (begin == content_.end()) return;
    const auto end = std::find_if_not(begin, content_.end(), is_digit);
    content_.replace(begin, end, kDigits[below(std::size(kDigits))]);
  }

  std::string content_;
  const std::string& other_;
  std::mt19937_64 random_;
};

}  // namespace

std::string mutated(std::string content, const std::string& other, uint64_t seed) {
  return Mutation(std::move(content), other, seed).made();
}

}  // namespace mox::fuzz
