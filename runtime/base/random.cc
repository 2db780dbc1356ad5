#include "runtime/base/random.h"

#include <bit>
#include <cmath>
#include <numbers>

#include "runtime/base/error.h"

namespace mox {
namespace {

constexpr uint32_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;

// In (0, 1]: safe to take a logarithm of.
float open_unit(uint32_t bits) { return (static_cast<float>(bits >> 8) + 1.0f) * 0x1p-24f; }
// In [0, 1).
float unit(uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }

}  // namespace

std::array<uint32_t, 4> philox(uint64_t key, uint64_t counter_low, uint64_t counter_high) {
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  uint32_t c0 = static_cast<uint32_t>(counter_low), c1 = static_cast<uint32_t>(counter_low >> 32);
  uint32_t c2 = static_cast<uint32_t>(counter_high), c3 = static_cast<uint32_t>(counter_high >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = static_cast<uint64_t>(kMultiplier0) * c0,
                   p1 = static_cast<uint64_t>(kMultiplier1) * c2;
    const uint32_t n0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0,
                   n2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c1 = static_cast<uint32_t>(p1);
    c3 = static_cast<uint32_t>(p0);
    c0 = n0;
    c2 = n2;
    k0 += kWeyl0;
    k1 += kWeyl1;
  }
  return {c0, c1, c2, c3};
}

uint64_t stable_hash(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (unsigned char c : text) hash = (hash ^ c) * 0x100000001b3;
  return hash;
}

uint64_t mix_hash(uint64_t a, uint64_t b) {
  uint64_t z = a + 0x9e3779b97f4a7c15 * (b + 1);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

RandomStream::RandomStream(uint64_t seed, uint64_t key) : key_(seed), stream_(key) {}

uint64_t RandomStream::bits(uint64_t position) const {
  const auto block = philox(key_, position / 2, stream_);
  const int at = static_cast<int>(position % 2) * 2;
  return static_cast<uint64_t>(block[at + 1]) << 32 | block[at];
}

uint64_t RandomStream::below(uint64_t position, uint64_t bound) const {
  MOX_ASSERT(bound > 0, "the bound of a random integer is positive");
  return (static_cast<unsigned __int128>(bits(position)) * bound) >> 64;
}

double RandomStream::uniform(uint64_t position) const {
  return static_cast<double>(bits(position) >> 11) * 0x1p-53;
}

void RandomStream::fill_uniform(std::span<float> out, uint64_t first, float low, float high) const {
  size_t i = 0;
  while (i < out.size()) {
    const uint64_t position = first + i;
    const auto block = philox(key_, position / 4, stream_);
    for (uint64_t lane = position % 4; lane < 4 && i < out.size(); ++lane, ++i)
      out[i] = std::fmin(low + (high - low) * unit(block[lane]), std::nextafter(high, low));
  }
}

void RandomStream::fill_normal(std::span<float> out, uint64_t first, float mean, float stddev) const {
  size_t i = 0;
  while (i < out.size()) {
    const uint64_t position = first + i;
    const auto block = philox(key_, position / 4, stream_);
    float values[4];
    for (int pair = 0; pair < 2; ++pair) {
      const float radius = std::sqrt(-2.0f * std::log(open_unit(block[2 * pair])));
      const float angle = 2.0f * std::numbers::pi_v<float> * unit(block[2 * pair + 1]);
      values[2 * pair] = radius * std::cos(angle);
      values[2 * pair + 1] = radius * std::sin(angle);
    }
    for (uint64_t lane = position % 4; lane < 4 && i < out.size(); ++lane, ++i)
      out[i] = mean + stddev * values[lane];
  }
}

void RandomStream::fill_truncated_normal(std::span<float> out, uint64_t first, float mean,
                                         float stddev) const {
  fill_normal(out, first, 0.0f, 1.0f);
  for (size_t i = 0; i < out.size(); ++i) {
    // Each retry is a stream of its own, keyed by the attempt, so a value depends on its position alone.
    for (uint64_t attempt = 1; std::fabs(out[i]) > 2.0f; ++attempt)
      RandomStream(key_, mix_hash(stream_, attempt)).fill_normal(out.subspan(i, 1), first + i, 0.0f, 1.0f);
    out[i] = mean + stddev * out[i];
  }
}

Permutation::Permutation(uint64_t size, uint64_t seed, uint64_t key) : size_(size) {
  const int bits = size <= 1 ? 1 : std::bit_width(size - 1);
  half_bits_ = (bits + 1) / 2;
  for (uint64_t round = 0; round < 4; ++round) {
    const auto block = philox(seed, round, key);
    round_keys_[round] = static_cast<uint64_t>(block[1]) << 32 | block[0];
  }
}

uint64_t Permutation::operator()(uint64_t position) const {
  MOX_ASSERT(position < size_, "a position lies inside its permutation");
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  uint64_t value = position;
  do {
    uint64_t left = value >> half_bits_, right = value & mask;
    for (uint64_t key : round_keys_) {
      const uint64_t next = left ^ (mix_hash(key, right) & mask);
      left = right;
      right = next;
    }
    value = left << half_bits_ | right;
  } while (value >= size_);
  return value;
}

}  // namespace mox
