// Counter-based random numbers: every value is a pure function of (seed, key, counter), so results do not
// depend on the number of threads, devices or ranks, nor on the order of calls, and there is no generator
// state to save.
//
// Philox4x32-10 of Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3" (SC 2011): a 64-bit key and a
// 128-bit counter give 128 random bits.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace mox {

// The raw generator: 4 x 32 random bits for (key, counter).
std::array<uint32_t, 4> philox(uint64_t key, uint64_t counter_low, uint64_t counter_high);

// A 64-bit FNV-1a hash: stable between builds and machines; names (of variables, nodes) become keys with it.
uint64_t stable_hash(std::string_view text);

// Mixes two 64-bit values into one (a bijection in each argument; splitmix64's finaliser).
uint64_t mix_hash(uint64_t a, uint64_t b);

// One stream of random numbers: the values at positions 0, 1, 2, ... for (seed, key). Cheap to make and to
// copy; safe to use from many threads at once. Position p uses counter block p / 4 (uniform) or p
// / 2 (normal).
class RandomStream {
 public:
  // `key` tells streams of one seed apart (stable_hash of a name, mixed with step or epoch by mix_hash).
  RandomStream(uint64_t seed, uint64_t key);

  uint64_t bits(uint64_t position) const;                   // 64 random bits
  uint64_t below(uint64_t position, uint64_t bound) const;  // uniform in [0, bound); bound >= 1
  double uniform(uint64_t position) const;                  // uniform in [0, 1), 53 random bits

  // Fills `out` with the values at positions first, first + 1, ...: the same value for a position whatever
  // the `first` it is reached from.
  void fill_uniform(std::span<float> out, uint64_t first, float low, float high) const;    // in [low, high)
  void fill_normal(std::span<float> out, uint64_t first, float mean, float stddev) const;  // Box-Muller
  // Normal values of which none is farther than two standard deviations from the mean (others
  // are drawn anew).
  void fill_truncated_normal(std::span<float> out, uint64_t first, float mean, float stddev) const;

 private:
  uint64_t key_;
  uint64_t stream_;
};

// A pseudo-random permutation of [0, size) without a table: `permutation(i)` is where position i takes its
// element. A four-round Feistel network on the next power of four, walked until the value falls into range.
// Keyed by (seed, epoch) it is the order of a full shuffle, and any position of any epoch is reached in O(1).
class Permutation {
 public:
  Permutation(uint64_t size, uint64_t seed, uint64_t key);
  uint64_t operator()(uint64_t position) const;  // position < size
  uint64_t size() const { return size_; }

 private:
  uint64_t size_;
  int half_bits_;
  std::array<uint64_t, 4> round_keys_;
};

}  // namespace mox
