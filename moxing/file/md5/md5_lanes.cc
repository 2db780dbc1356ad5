#include "moxing/file/md5/md5_lanes.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "runtime/base/error.h"

namespace mox::file {
namespace {

static_assert(std::endian::native == std::endian::little, "MD5 reads and writes little-endian words");
constexpr size_t kBlock = 64, kWords = 16;

// Two registers of 256 bits, which do not wait for each other.
using Register [[gnu::vector_size(32)]] = uint32_t;
struct Lanes {
  Register low, high;

  friend Lanes operator+(const Lanes& a, const Lanes& b) { return {a.low + b.low, a.high + b.high}; }
  friend Lanes operator+(const Lanes& a, uint32_t b) { return {a.low + b, a.high + b}; }
  friend Lanes operator&(const Lanes& a, const Lanes& b) { return {a.low & b.low, a.high & b.high}; }
  friend Lanes operator|(const Lanes& a, const Lanes& b) { return {a.low | b.low, a.high | b.high}; }
  friend Lanes operator^(const Lanes& a, const Lanes& b) { return {a.low ^ b.low, a.high ^ b.high}; }
  friend Lanes operator~(const Lanes& a) { return {~a.low, ~a.high}; }
  Lanes rotated(int by) const {
    return {(low << by) | (low >> (32 - by)), (high << by) | (high >> (32 - by))};
  }
  uint32_t lane(size_t i) const { return i < kMd5Lanes / 2 ? low[i] : high[i - kMd5Lanes / 2]; }
};
static_assert(sizeof(Lanes) == kMd5Lanes * sizeof(uint32_t));

constexpr uint32_t kBegin[4] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
constexpr int kShifts[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};
constexpr int kWordOf[4][2] = {
    {1, 0}, {5, 1}, {3, 5}, {7, 0}};  // step i takes word (first * i + second) % 16
constexpr uint32_t kSines[64] = {     // floor(2^32 |sin(i + 1)|)
    0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501,
    0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821,
    0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
    0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a,
    0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70,
    0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
    0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
    0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391};

template <int kRound>
inline Lanes mixed(const Lanes& b, const Lanes& c, const Lanes& d) {
  if constexpr (kRound == 0) return d ^ (b & (c ^ d));
  if constexpr (kRound == 1) return c ^ (d & (b ^ c));
  if constexpr (kRound == 2) return b ^ c ^ d;
  if constexpr (kRound == 3) return c ^ (b | ~d);
}

template <int kRound, int kStep>
inline void step(Lanes& a, const Lanes& b, const Lanes& c, const Lanes& d, const Lanes* words) {
  constexpr int kWord = (kWordOf[kRound][0] * kStep + kWordOf[kRound][1]) % 16;
  a = b + (a + mixed<kRound>(b, c, d) + words[kWord] + kSines[16 * kRound + kStep])
              .rotated(kShifts[kRound][kStep % 4]);
}

template <int kRound, int kStep = 0>
inline void round(Lanes& a, Lanes& b, Lanes& c, Lanes& d, const Lanes* words) {
  step<kRound, kStep>(a, b, c, d, words);
  step<kRound, kStep + 1>(d, a, b, c, words);
  step<kRound, kStep + 2>(c, d, a, b, words);
  step<kRound, kStep + 3>(b, c, d, a, words);
  if constexpr (kStep < 12) round<kRound, kStep + 4>(a, b, c, d, words);
}

// A text in blocks, the last one or two of which hold its rest, a bit and its length.
class Blocks {
 public:
  explicit Blocks(std::string_view text = {}) : text_(text), whole_(text.size() / kBlock) {
    const size_t rest = text.size() % kBlock, size = rest + 9 <= kBlock ? kBlock : 2 * kBlock;
    std::ranges::copy(text.substr(whole_ * kBlock), end_.begin());
    end_[rest] = '\x80';
    const uint64_t bits = uint64_t{8} * text.size();
    std::memcpy(end_.data() + size - sizeof bits, &bits, sizeof bits);
    count_ = whole_ + size / kBlock;
  }

  size_t count() const { return count_; }
  // Of an index beyond them, some block: nothing looks at what comes of it.
  const char* at(size_t index) const {
    if (index < whole_) return text_.data() + index * kBlock;
    return end_.data() + (std::min(index, count_ - 1) - whole_) * kBlock;
  }

 private:
  std::string_view text_;
  size_t whole_, count_;
  std::array<char, 2 * kBlock> end_{};
};

void digest_lanes(std::span<const std::string_view> texts, std::span<Md5Digest> digests) {
  std::array<Blocks, kMd5Lanes> lanes;
  std::ranges::transform(texts, lanes.begin(), [](std::string_view text) { return Blocks(text); });
  const size_t most = std::ranges::max_element(lanes, {}, &Blocks::count)->count();
  Lanes a = Lanes{} + kBegin[0], b = Lanes{} + kBegin[1], c = Lanes{} + kBegin[2], d = Lanes{} + kBegin[3];
  for (size_t block = 0; block < most; ++block) {
    // Through memory, which GCC makes less of than of putting words into registers one by one.
    alignas(Lanes) uint32_t transposed[kWords][kMd5Lanes];
    for (size_t i = 0; i < kMd5Lanes; ++i) {
      const char* from = lanes[i].at(block);
      for (size_t w = 0; w < kWords; ++w) std::memcpy(&transposed[w][i], from + 4 * w, 4);
    }
    Lanes words[kWords];
    std::memcpy(words, transposed, sizeof words);
    const Lanes a_before = a, b_before = b, c_before = c, d_before = d;
    round<0>(a, b, c, d, words);
    round<1>(a, b, c, d, words);
    round<2>(a, b, c, d, words);
    round<3>(a, b, c, d, words);
    a = a + a_before;
    b = b + b_before;
    c = c + c_before;
    d = d + d_before;
    for (size_t i = 0; i < texts.size(); ++i)
      if (block + 1 == lanes[i].count()) {
        const uint32_t state[4] = {a.lane(i), b.lane(i), c.lane(i), d.lane(i)};
        std::memcpy(digests[i].data(), state, sizeof state);
      }
  }
}

}  // namespace

void md5_of_each(std::span<const std::string_view> texts, std::span<Md5Digest> digests) {
  MOX_ASSERT(texts.size() == digests.size(), "a digest for each text");
  for (size_t first = 0; first < texts.size(); first += kMd5Lanes) {
    const size_t count = std::min(kMd5Lanes, texts.size() - first);
    digest_lanes(texts.subspan(first, count), digests.subspan(first, count));
  }
}

}  // namespace mox::file
