// Convolutions' filters between the plain layout and the blocks of channels that oneDNN's convolutions want:
// 16 x 16 with AVX-512, 8 x 8 in float32 with AVX2.
//
// A filter has the plain form [out][in][taps], taps = window height * width. In blocks, with out = 16 O + o
// and in = 16 I + i (AVX2: 8 instead of 16):
//   float32   ABcd16b16a   [O][I][taps][i][o]            both directions
//             ABcd16a16b   [O][I][taps][o][i]            from plain
//             BAcd16a16b   [I][O][taps][o][i]            from plain
//   bfloat16  ABcd8b16a2b  [O][I][taps][i / 2][o][i % 2] from plain
//             ABcd8a16b2a  [O][I][taps][o / 2][i][o % 2] from plain
//             BAcd8a16b2a  [I][O][taps][o / 2][i][o % 2] from plain
// These are the directions that training needs: gradients of filters are float32. All accesses, of memory on
// either side, are whole vectors (halves of one at the edge of a bfloat16 filter).
#pragma once

#include <optional>

#include "runtime/graph/kernel.h"

namespace mox {

// The kernel that converts a filter of `type` from `from` to `to`; nothing where it is none of the above,
// where channels are not whole blocks (or the layout is of groups), or where the window has more than
// filter_conversion::kMaxTaps pixels. Moves bits, NaNs included; keeps no state; uses its
// team.
std::optional<Kernel> filter_conversion_kernel(const TensorType& type, const Layout& from, const Layout& to);

namespace filter_conversion {

inline constexpr int64_t kMaxTaps = 49;  // 7 x 7: so many lines of a block lie on the stack

// In-channels that are converted before the next out-channels are, where those come first in blocked memory
// (BAcd...): whole lines of it, one after the other, and pieces of plain rows of more than one cache line.
inline constexpr int64_t kStripChannels = 64;

// Elements of 4 bytes (float32) or 2 (bfloat16).
struct Filter {
  int64_t out_channels, in_channels, taps;
  bool is_out_outermost;  // ABcd...; otherwise BAcd...
  int64_t block;          // channels

  int64_t out_blocks() const { return out_channels / block; }
  int64_t in_blocks() const { return in_channels / block; }
  // Elements from one block to the next, in blocked memory.
  int64_t out_stride() const { return block * block * taps * (is_out_outermost ? in_blocks() : 1); }
  int64_t in_stride() const { return block * block * taps * (is_out_outermost ? 1 : out_blocks()); }
  int64_t strip_blocks() const { return kStripChannels / block; }
  int64_t strips() const { return (in_blocks() + strip_blocks() - 1) / strip_blocks(); }
};

enum class Conversion { kFloatToInOut, kFloatFromInOut, kFloatToOutIn, kBFloat16ToInOut, kBFloat16ToOutIn };

// kStreamed: around the caches, where vectors are whole cache lines. Needs 64-byte alignment.
enum class Writing { kCached, kStreamed };

// Converts blocks of out-channels by strips of in-channels, [first, last) of filter.out_blocks() *
// filter.strips() in the order of the blocked memory. from, to: the whole filter.
using ConvertStrips = void (*)(const Filter& filter, const std::byte* from, std::byte* to, int64_t first,
                               int64_t last);
// Of float32.
ConvertStrips float_converter_avx2(Conversion conversion, Writing writing);
ConvertStrips float_converter_avx512(Conversion conversion, Writing writing);
// Of bfloat16.
ConvertStrips pair_converter_avx512(Conversion conversion, Writing writing);

}  // namespace filter_conversion
}  // namespace mox
