// Filters of bfloat16 to blocks (filter_conversion.h). Compiled with AVX-512 F and BW switched on; called
// only where the processor has them.
#include <immintrin.h>

#include "ops/convolution/lanes/filter_tiles.h"

namespace mox::filter_conversion {
namespace {

using Line = __m512i;  // a cache line: 16 numbers of 4 bytes, pairs of bfloat16
constexpr int64_t kBlock = kLanes;
constexpr int64_t kLineFloats = kLanes;

inline Line line_of(Vector v) { return _mm512_castps_si512(v); }
template <Writing kWriting>
inline void write_line(float* to, Line value) {
  write<kWriting>(to, _mm512_castsi512_ps(value));
}

// The first sixteen or eight numbers of rows.
inline void load_pair_rows(const float* rows, int64_t row_floats, int64_t count, Vector* v) {
  count >= kLanes ? load_rows<16>(rows, row_floats, v) : load_rows<8>(rows, row_floats, v);
}

// lines[c] = column c of 16 rows of pairs. Writes whole groups of 16 lines; columns is a multiple of 8.
inline void transpose_rows(const float* rows, int64_t row_floats, int64_t columns, Line* lines) {
  for (int64_t c = 0; c < columns; c += 16) {
    Vector v[16];
    load_pair_rows(rows + c, row_floats, columns - c, v);
    transpose(v, v);
#pragma GCC unroll 16
    for (int64_t j = 0; j < 16; ++j) lines[c + j] = line_of(v[j]);
  }
}

// For _mm512_permutex2var_epi16, which takes word w < 32 from its first vector and w - 32 from its second.
struct WordIndices {
  alignas(64) int16_t words[32];
  operator Line() const { return _mm512_load_si512(words); }  // NOLINT(google-explicit-constructor)
};

template <typename WordAt>
constexpr WordIndices word_indices(const WordAt& word_at) {
  WordIndices indices{};
  for (int i = 0; i < 32; ++i) indices.words[i] = static_cast<int16_t>(word_at(i));
  return indices;
}

// Pairs of word 2 i + first of the one vector and 2 i + second of the other: [first][second].
constexpr WordIndices kPairOfHalves[2][2] = {
    {word_indices([](int i) { return i % 2 == 0 ? i : 32 + i - 1; }),
     word_indices([](int i) { return i % 2 == 0 ? i : 32 + i; })},
    {word_indices([](int i) { return i % 2 == 0 ? i + 1 : 32 + i - 1; }),
     word_indices([](int i) { return i % 2 == 0 ? i + 1 : 32 + i; })}};
// The words 2 i + half of the one vector, then those of the other.
constexpr WordIndices kHalves[2] = {word_indices([](int i) { return 2 * i; }),
                                    word_indices([](int i) { return 2 * i + 1; })};
// Words of the two vectors alternating: of their first halves, of their second halves.
constexpr WordIndices kInterleaved[2] = {word_indices([](int i) { return i % 2 * 32 + i / 2; }),
                                         word_indices([](int i) { return i % 2 * 32 + 16 + i / 2; })};

// Pairs of bfloat16 are moved as numbers of 4 bytes; a tile's lines hold columns 2 k and 2 k + 1 of its rows.
constexpr int64_t kPairs = kBlock / 2;
constexpr int64_t kPairBlocks = 2;

template <Writing kWriting>
void bfloat16_to_in_out(const Filter& f, const float* plain, float* blocked, int64_t first, int64_t last) {
  const int64_t row = f.in_channels * f.taps / 2;
  Line lines[kPairBlocks * kPairs * kMaxTaps + kPairs];
  for_each_tile<kWriting, kPairBlocks>(f, first, last, [&](const Tile& tile) {
    transpose_rows(plain + tile.plain / 2, row, tile.blocks * kPairs * f.taps, lines);
    for (int64_t b = 0; b < tile.blocks; ++b) {
      float* to = blocked + (tile.blocked + b * f.in_stride()) / 2;
      for (int64_t tap = 0; tap < f.taps; ++tap) {
        int64_t column = b * kBlock * f.taps + tap;
        const Line indices = kPairOfHalves[column % 2][(column + f.taps) % 2];
#pragma GCC unroll 8
        for (int64_t pair = 0; pair < kPairs; ++pair, column += 2 * f.taps, to += kLineFloats)
          write_line<kWriting>(
              to, _mm512_permutex2var_epi16(lines[column / 2], indices, lines[(column + f.taps) / 2]));
      }
    }
  });
}

// A block's line of two out-channels from their rows.
template <Writing kWriting>
void interleave_rows(const Filter& f, const float* plain, float* blocked, int64_t first, int64_t last) {
  const int64_t row = f.in_channels / 2;
  const Line first_block = kInterleaved[0], second_block = kInterleaved[1];
  for_each_tile<kWriting, kPairBlocks>(f, first, last, [&](const Tile& tile) {
    Vector v[16];
    load_pair_rows(plain + tile.plain / 2, row, tile.blocks * kPairs, v);
    float* to = blocked + tile.blocked / 2;
#pragma GCC unroll 8
    for (int64_t pair = 0; pair < kPairs; ++pair)
      write_line<kWriting>(
          to + pair * kLineFloats,
          _mm512_permutex2var_epi16(line_of(v[2 * pair]), first_block, line_of(v[2 * pair + 1])));
    if (tile.blocks == 1) return;
    to += f.in_stride() / 2;
#pragma GCC unroll 8
    for (int64_t pair = 0; pair < kPairs; ++pair)
      write_line<kWriting>(
          to + pair * kLineFloats,
          _mm512_permutex2var_epi16(line_of(v[2 * pair]), second_block, line_of(v[2 * pair + 1])));
  });
}

template <Writing kWriting>
void bfloat16_to_out_in(const Filter& f, const float* plain, float* blocked, int64_t first, int64_t last) {
  if (f.taps == 1) return interleave_rows<kWriting>(f, plain, blocked, first, last);
  const int64_t row = f.in_channels * f.taps / 2;
  Line lines[kPairBlocks * kPairs * kMaxTaps + kPairs];
  for_each_tile<kWriting, kPairBlocks>(f, first, last, [&](const Tile& tile) {
    transpose_rows(plain + tile.plain / 2, row, tile.blocks * kPairs * f.taps, lines);
    // The first once more where it is alone.
    const int64_t second_block = (tile.blocks - 1) * kPairs * f.taps;
    float* to = blocked + tile.blocked / 2;
    for (int64_t tap = 0; tap < f.taps; ++tap, to += kPairs * kLineFloats) {
      Vector v[16];
#pragma GCC unroll 16
      for (int64_t i = 0, column = tap; i < kBlock; ++i, column += f.taps) {
        const Line* line = lines + column / 2;
        v[i] =
            _mm512_castsi512_ps(_mm512_permutex2var_epi16(line[0], kHalves[column % 2], line[second_block]));
      }
      transpose(v, v);
      for (int64_t b = 0; b < tile.blocks; ++b)
#pragma GCC unroll 8
        for (int64_t pair = 0; pair < kPairs; ++pair)
          write_line<kWriting>(to + b * f.in_stride() / 2 + pair * kLineFloats,
                               line_of(v[b * kPairs + pair]));
    }
  });
}

template <void (*kConvert)(const Filter&, const float*, float*, int64_t, int64_t)>
void convert_pairs(const Filter& filter, const std::byte* from, std::byte* to, int64_t first, int64_t last) {
  kConvert(filter, reinterpret_cast<const float*>(from), reinterpret_cast<float*>(to), first, last);
}

}  // namespace

ConvertStrips pair_converter_avx512(Conversion conversion, Writing writing) {
  const bool is_streamed = writing == Writing::kStreamed;
  switch (conversion) {
    case Conversion::kBFloat16ToInOut:
      return is_streamed ? convert_pairs<bfloat16_to_in_out<Writing::kStreamed>>
                         : convert_pairs<bfloat16_to_in_out<Writing::kCached>>;
    case Conversion::kBFloat16ToOutIn:
      return is_streamed ? convert_pairs<bfloat16_to_out_in<Writing::kStreamed>>
                         : convert_pairs<bfloat16_to_out_in<Writing::kCached>>;
    case Conversion::kFloatToInOut:
    case Conversion::kFloatFromInOut:
    case Conversion::kFloatToOutIn:
      break;
  }
  return nullptr;
}

}  // namespace mox::filter_conversion
