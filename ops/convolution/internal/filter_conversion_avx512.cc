// Compiled with AVX-512 F and BW switched on; called only where the processor has them.
//
// A cache line of plain memory goes along the in-channels and taps of one out-channel. Sixteen rows of them,
// transposed in registers, are lines along the out-channels, one for each in-channel and tap: what the
// layouts with `out` innermost consist of, whatever the window. The others pass through such lines too if
// they have more than one tap, and are transposed back.
#include <immintrin.h>

#include <algorithm>

#include "ops/convolution/filter_conversion.h"

namespace mox::filter_conversion {
namespace {

using Vector = __m512i;  // a cache line: 16 numbers of 4 bytes
constexpr int64_t kLineBytes = sizeof(Vector);

// GCC 12 takes the unmasked forms of some instructions for uses of uninitialised values.
constexpr __mmask16 kAllLanes = 0xffff;
constexpr __mmask8 kAllPairs = 0xff;

template <Writing kWriting>
inline void write(std::byte* to, Vector value) {
  if constexpr (kWriting == Writing::kStreamed)
    _mm512_stream_si512(reinterpret_cast<Vector*>(to), value);
  else
    _mm512_storeu_si512(to, value);
}

// Lane j of v[i] becomes lane i of v[j].
inline void transpose(Vector* v) {
  Vector t[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_maskz_unpacklo_epi32(kAllLanes, v[i], v[i + 1]);
    t[i + 1] = _mm512_maskz_unpackhi_epi32(kAllLanes, v[i], v[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    v[i] = _mm512_maskz_unpacklo_epi64(kAllPairs, t[i], t[i + 2]);
    v[i + 1] = _mm512_maskz_unpackhi_epi64(kAllPairs, t[i], t[i + 2]);
    v[i + 2] = _mm512_maskz_unpacklo_epi64(kAllPairs, t[i + 1], t[i + 3]);
    v[i + 3] = _mm512_maskz_unpackhi_epi64(kAllPairs, t[i + 1], t[i + 3]);
  }
  // Quarter q of v[4 g + c] holds lane 4 q + c of four vectors, the first of which was v[4 g].
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    const Vector even_first = _mm512_maskz_shuffle_i32x4(kAllLanes, v[c], v[4 + c], 0x88);
    const Vector odd_first = _mm512_maskz_shuffle_i32x4(kAllLanes, v[c], v[4 + c], 0xdd);
    const Vector even_last = _mm512_maskz_shuffle_i32x4(kAllLanes, v[8 + c], v[12 + c], 0x88);
    const Vector odd_last = _mm512_maskz_shuffle_i32x4(kAllLanes, v[8 + c], v[12 + c], 0xdd);
    v[c] = _mm512_maskz_shuffle_i32x4(kAllLanes, even_first, even_last, 0x88);
    v[4 + c] = _mm512_maskz_shuffle_i32x4(kAllLanes, odd_first, odd_last, 0x88);
    v[8 + c] = _mm512_maskz_shuffle_i32x4(kAllLanes, even_first, even_last, 0xdd);
    v[12 + c] = _mm512_maskz_shuffle_i32x4(kAllLanes, odd_first, odd_last, 0xdd);
  }
}

// v[r] = the line at `rows`, r rows on; of its lanes those of `lanes`, the others are zero. Fetches the lines
// of the next 16 rows, which follow once the tiles beside these are done: rows are too short for the
// processor to find out.
inline void load_rows(const std::byte* rows, int64_t row_bytes, __mmask16 lanes, Vector* v) {
#pragma GCC unroll 16
  for (int64_t r = 0; r < kBlock; ++r) {
    v[r] = _mm512_maskz_loadu_epi32(lanes, rows + r * row_bytes);
    _mm_prefetch(reinterpret_cast<const char*>(rows + (r + kBlock) * row_bytes), _MM_HINT_T1);
  }
}

// lines[c] = column c of 16 rows of 4-byte numbers. Writes whole groups of 16 lines; columns is a multiple
// of 8.
inline void transpose_rows(const std::byte* rows, int64_t row_bytes, int64_t columns, Vector* lines) {
  for (int64_t c = 0; c < columns; c += 16) {
    Vector v[16];
    load_rows(rows + c * 4, row_bytes, columns - c >= 16 ? kAllLanes : 0x00ff, v);
    transpose(v);
#pragma GCC unroll 16
    for (int64_t j = 0; j < 16; ++j) _mm512_store_si512(lines + c + j, v[j]);
  }
}

// Walks the columns of a block's plain rows, (in-channel, tap), and knows which line [tap][in-channel] each
// is.
class LineOfColumn {
 public:
  explicit LineOfColumn(int64_t taps) : taps_(taps) {}
  int64_t bytes() const { return line_ * kLineBytes; }
  void advance() {
    line_ += kBlock;
    if (++tap_ < taps_) return;
    tap_ = 0;
    line_ += 1 - taps_ * kBlock;
  }

 private:
  int64_t taps_, tap_ = 0, line_ = 0;
};

// What one call of a body converts: its first byte in either memory, and its blocks along the in-channels.
struct Tile {
  int64_t plain, blocked, blocks;
};

// kBlocks: of a tile, at most.
template <Writing kWriting, typename Element, int64_t kBlocks, typename Body>
inline void for_each_tile(const Filter& f, int64_t first, int64_t last, const Body& body) {
  const int64_t strips = f.strips(), size = sizeof(Element);
  for (int64_t index = first; index < last; ++index) {
    const int64_t out = f.is_out_outermost ? index / strips : index % f.out_blocks();
    const int64_t strip = f.is_out_outermost ? index % strips : index / f.out_blocks();
    const int64_t end = std::min((strip + 1) * kStripBlocks, f.in_blocks());
    for (int64_t in = strip * kStripBlocks; in < end; in += kBlocks)
      body(Tile{(out * f.in_channels + in) * kBlock * f.taps * size,
                (out * f.out_stride() + in * f.in_stride()) * size, std::min(kBlocks, end - in)});
  }
  if constexpr (kWriting == Writing::kStreamed) _mm_sfence();
}

template <Writing kWriting>
void float_to_in_out(const Filter& f, const std::byte* plain, std::byte* blocked, int64_t first,
                     int64_t last) {
  const int64_t row_bytes = f.in_channels * f.taps * 4;
  for_each_tile<kWriting, float, 1>(f, first, last, [&](const Tile& tile) {
    LineOfColumn line(f.taps);
    for (int64_t c = 0; c < kBlock * f.taps; c += 16) {
      Vector v[16];
      load_rows(plain + tile.plain + c * 4, row_bytes, kAllLanes, v);
      transpose(v);
#pragma GCC unroll 16
      for (int j = 0; j < 16; ++j, line.advance())
        write<kWriting>(blocked + tile.blocked + line.bytes(), v[j]);
    }
  });
}

template <Writing kWriting>
void float_from_in_out(const Filter& f, const std::byte* blocked, std::byte* plain, int64_t first,
                       int64_t last) {
  const int64_t row_bytes = f.in_channels * f.taps * 4;
  for_each_tile<kWriting, float, 1>(f, first, last, [&](const Tile& tile) {
    LineOfColumn line(f.taps);
    for (int64_t c = 0; c < kBlock * f.taps; c += 16) {
      Vector v[16];
#pragma GCC unroll 16
      for (int j = 0; j < 16; ++j, line.advance())
        v[j] = _mm512_loadu_si512(blocked + tile.blocked + line.bytes());
      transpose(v);
#pragma GCC unroll 16
      for (int64_t r = 0; r < kBlock; ++r) write<kWriting>(plain + tile.plain + c * 4 + r * row_bytes, v[r]);
    }
  });
}

template <Writing kWriting>
void float_to_out_in(const Filter& f, const std::byte* plain, std::byte* blocked, int64_t first,
                     int64_t last) {
  const int64_t row_bytes = f.in_channels * f.taps * 4;
  Vector lines[kBlock * kMaxTaps];
  for_each_tile<kWriting, float, 1>(f, first, last, [&](const Tile& tile) {
    std::byte* to = blocked + tile.blocked;
    Vector v[16];
    if (f.taps == 1) {
      load_rows(plain + tile.plain, row_bytes, kAllLanes, v);
#pragma GCC unroll 16
      for (int64_t r = 0; r < kBlock; ++r) write<kWriting>(to + r * kLineBytes, v[r]);
      return;
    }
    transpose_rows(plain + tile.plain, row_bytes, kBlock * f.taps, lines);
    for (int64_t tap = 0; tap < f.taps; ++tap, to += kBlock * kLineBytes) {
#pragma GCC unroll 16
      for (int64_t i = 0; i < kBlock; ++i) v[i] = lines[i * f.taps + tap];
      transpose(v);
#pragma GCC unroll 16
      for (int64_t r = 0; r < kBlock; ++r) write<kWriting>(to + r * kLineBytes, v[r]);
    }
  });
}

// For _mm512_permutex2var_epi16, which takes word w < 32 from its first vector and w - 32 from its second.
struct WordIndices {
  alignas(64) int16_t words[32];
  operator Vector() const { return _mm512_load_si512(words); }  // NOLINT(google-explicit-constructor)
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
void bfloat16_to_in_out(const Filter& f, const std::byte* plain, std::byte* blocked, int64_t first,
                        int64_t last) {
  const int64_t row_bytes = f.in_channels * f.taps * 2;
  Vector lines[kPairBlocks * kPairs * kMaxTaps + kPairs];
  for_each_tile<kWriting, BFloat16, kPairBlocks>(f, first, last, [&](const Tile& tile) {
    transpose_rows(plain + tile.plain, row_bytes, tile.blocks * kPairs * f.taps, lines);
    for (int64_t b = 0; b < tile.blocks; ++b) {
      std::byte* to = blocked + tile.blocked + b * f.in_stride() * 2;
      for (int64_t tap = 0; tap < f.taps; ++tap) {
        int64_t column = b * kBlock * f.taps + tap;
        const Vector indices = kPairOfHalves[column % 2][(column + f.taps) % 2];
#pragma GCC unroll 8
        for (int64_t pair = 0; pair < kPairs; ++pair, column += 2 * f.taps, to += kLineBytes)
          write<kWriting>(
              to, _mm512_permutex2var_epi16(lines[column / 2], indices, lines[(column + f.taps) / 2]));
      }
    }
  });
}

// A block's line of two out-channels from their rows.
template <Writing kWriting>
void interleave_rows(const Filter& f, const std::byte* plain, std::byte* blocked, int64_t first,
                     int64_t last) {
  const int64_t row_bytes = f.in_channels * 2;
  const Vector first_block = kInterleaved[0], second_block = kInterleaved[1];
  for_each_tile<kWriting, BFloat16, kPairBlocks>(f, first, last, [&](const Tile& tile) {
    Vector v[16];
    load_rows(plain + tile.plain, row_bytes, tile.blocks == 2 ? kAllLanes : 0x00ff, v);
    std::byte* to = blocked + tile.blocked;
#pragma GCC unroll 8
    for (int64_t pair = 0; pair < kPairs; ++pair)
      write<kWriting>(to + pair * kLineBytes,
                      _mm512_permutex2var_epi16(v[2 * pair], first_block, v[2 * pair + 1]));
    if (tile.blocks == 1) return;
    to += f.in_stride() * 2;
#pragma GCC unroll 8
    for (int64_t pair = 0; pair < kPairs; ++pair)
      write<kWriting>(to + pair * kLineBytes,
                      _mm512_permutex2var_epi16(v[2 * pair], second_block, v[2 * pair + 1]));
  });
}

template <Writing kWriting>
void bfloat16_to_out_in(const Filter& f, const std::byte* plain, std::byte* blocked, int64_t first,
                        int64_t last) {
  if (f.taps == 1) return interleave_rows<kWriting>(f, plain, blocked, first, last);
  const int64_t row_bytes = f.in_channels * f.taps * 2;
  Vector lines[kPairBlocks * kPairs * kMaxTaps + kPairs];
  for_each_tile<kWriting, BFloat16, kPairBlocks>(f, first, last, [&](const Tile& tile) {
    transpose_rows(plain + tile.plain, row_bytes, tile.blocks * kPairs * f.taps, lines);
    const int64_t second_block =
        (tile.blocks - 1) * kPairs * f.taps;  // the first once more where it is alone
    std::byte* to = blocked + tile.blocked;
    for (int64_t tap = 0; tap < f.taps; ++tap, to += kPairs * kLineBytes) {
      Vector v[16];
#pragma GCC unroll 16
      for (int64_t i = 0, column = tap; i < kBlock; ++i, column += f.taps) {
        const Vector* line = lines + column / 2;
        v[i] = _mm512_permutex2var_epi16(line[0], kHalves[column % 2], line[second_block]);
      }
      transpose(v);
      for (int64_t b = 0; b < tile.blocks; ++b)
#pragma GCC unroll 8
        for (int64_t pair = 0; pair < kPairs; ++pair)
          write<kWriting>(to + b * f.in_stride() * 2 + pair * kLineBytes, v[b * kPairs + pair]);
    }
  });
}

}  // namespace

ConvertStrips converter_avx512(Conversion conversion, Writing writing) {
  const bool is_streamed = writing == Writing::kStreamed;
  switch (conversion) {
    case Conversion::kFloatToInOut:
      return is_streamed ? float_to_in_out<Writing::kStreamed> : float_to_in_out<Writing::kCached>;
    case Conversion::kFloatFromInOut:
      return is_streamed ? float_from_in_out<Writing::kStreamed> : float_from_in_out<Writing::kCached>;
    case Conversion::kFloatToOutIn:
      return is_streamed ? float_to_out_in<Writing::kStreamed> : float_to_out_in<Writing::kCached>;
    case Conversion::kBFloat16ToInOut:
      return is_streamed ? bfloat16_to_in_out<Writing::kStreamed> : bfloat16_to_in_out<Writing::kCached>;
    case Conversion::kBFloat16ToOutIn:
      return is_streamed ? bfloat16_to_out_in<Writing::kStreamed> : bfloat16_to_out_in<Writing::kCached>;
  }
  return nullptr;
}

}  // namespace mox::filter_conversion
