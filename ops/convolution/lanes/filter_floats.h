// Filters of float32 to blocks and back (filter_conversion.h, ops/processor/lanes.h).
#pragma once

#include "ops/convolution/lanes/filter_tiles.h"

namespace mox::filter_conversion {
inline namespace MOX_LANES {
namespace {

// lines[c] = column c of kLanes rows; columns is a multiple of kLanes.
inline void transpose_rows(const float* rows, int64_t row_floats, int64_t columns, Vector* lines) {
  for (int64_t c = 0; c < columns; c += kLanes) {
    Vector v[kLanes];
    load_rows<kLanes>(rows + c, row_floats, v);
    transpose(v, v);
#pragma GCC unroll 16
    for (int64_t j = 0; j < kLanes; ++j) lines[c + j] = v[j];
  }
}

template <Writing kWriting>
void float_to_in_out(const Filter& f, const float* plain, float* blocked, int64_t first, int64_t last) {
  const int64_t row = f.in_channels * f.taps;
  for_each_tile<kWriting, 1>(f, first, last, [&](const Tile& tile) {
    LineOfColumn line(f.taps);
    for (int64_t c = 0; c < kLanes * f.taps; c += kLanes) {
      Vector v[kLanes];
      load_rows<kLanes>(plain + tile.plain + c, row, v);
      transpose(v, v);
#pragma GCC unroll 16
      for (int j = 0; j < kLanes; ++j, line.advance())
        write<kWriting>(blocked + tile.blocked + line.floats(), v[j]);
    }
  });
}

template <Writing kWriting>
void float_from_in_out(const Filter& f, const float* blocked, float* plain, int64_t first, int64_t last) {
  const int64_t row = f.in_channels * f.taps;
  for_each_tile<kWriting, 1>(f, first, last, [&](const Tile& tile) {
    LineOfColumn line(f.taps);
    for (int64_t c = 0; c < kLanes * f.taps; c += kLanes) {
      Vector v[kLanes];
#pragma GCC unroll 16
      for (int j = 0; j < kLanes; ++j, line.advance()) v[j] = load(blocked + tile.blocked + line.floats());
      transpose(v, v);
#pragma GCC unroll 16
      for (int64_t r = 0; r < kLanes; ++r) write<kWriting>(plain + tile.plain + c + r * row, v[r]);
    }
  });
}

template <Writing kWriting>
void float_to_out_in(const Filter& f, const float* plain, float* blocked, int64_t first, int64_t last) {
  const int64_t row = f.in_channels * f.taps;
  Vector lines[kLanes * kMaxTaps];
  for_each_tile<kWriting, 1>(f, first, last, [&](const Tile& tile) {
    float* to = blocked + tile.blocked;
    Vector v[kLanes];
    if (f.taps == 1) {
      load_rows<kLanes>(plain + tile.plain, row, v);
#pragma GCC unroll 16
      for (int64_t r = 0; r < kLanes; ++r) write<kWriting>(to + r * kLanes, v[r]);
      return;
    }
    transpose_rows(plain + tile.plain, row, kLanes * f.taps, lines);
    for (int64_t tap = 0; tap < f.taps; ++tap, to += kLanes * kLanes) {
#pragma GCC unroll 16
      for (int64_t i = 0; i < kLanes; ++i) v[i] = lines[i * f.taps + tap];
      transpose(v, v);
#pragma GCC unroll 16
      for (int64_t r = 0; r < kLanes; ++r) write<kWriting>(to + r * kLanes, v[r]);
    }
  });
}

template <void (*kConvert)(const Filter&, const float*, float*, int64_t, int64_t)>
void convert_floats(const Filter& filter, const std::byte* from, std::byte* to, int64_t first, int64_t last) {
  kConvert(filter, reinterpret_cast<const float*>(from), reinterpret_cast<float*>(to), first, last);
}

// Halves of cache lines are not streamed.
inline constexpr Writing kLarge = kFillsLine ? Writing::kStreamed : Writing::kCached;

ConvertStrips float_converter(Conversion conversion, Writing writing) {
  const bool is_large = writing == Writing::kStreamed;
  switch (conversion) {
    case Conversion::kFloatToInOut:
      return is_large ? convert_floats<float_to_in_out<kLarge>>
                      : convert_floats<float_to_in_out<Writing::kCached>>;
    case Conversion::kFloatFromInOut:
      return is_large ? convert_floats<float_from_in_out<kLarge>>
                      : convert_floats<float_from_in_out<Writing::kCached>>;
    case Conversion::kFloatToOutIn:
      return is_large ? convert_floats<float_to_out_in<kLarge>>
                      : convert_floats<float_to_out_in<Writing::kCached>>;
    case Conversion::kBFloat16ToInOut:
    case Conversion::kBFloat16ToOutIn:
      break;
  }
  return nullptr;
}

}  // namespace
}  // namespace MOX_LANES
}  // namespace mox::filter_conversion
