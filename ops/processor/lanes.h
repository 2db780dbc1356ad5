// Vectors of float32 of the set of instructions that a file is compiled for: what kernels with one source for
// every width are written in. For the kernels' own *_avx2.cc, *_avx512.cc ... alone, and headers of theirs.
//
// Such a header puts what it defines into `namespace mox::... ::inline MOX_LANES`: functions of one name that
// are compiled for several sets are different functions then, and no linker takes one for another. A new set
// is a header like lanes_avx2.h, a line below, and for each kernel a file of a few lines that includes its
// source; and micro-kernels that fill its registers.
//
// Each set has
//   Vector                     with + - * /, kLanes numbers; kRegisters of them
//   zero() splat(value)        in all lanes
//   load(from) store(to, v)    no alignment
//   stream(to, v)              around the caches; aligned to the vector. finish_streams() ends a row of them
//   multiply_add(a, b, c)      a * b + c, rounded once
//   subtract_product(a, b, c)  c - a * b, rounded once
//   maximum(number, value)     NaN in the value stays
//   where_positive(given, v)   v where given > 0, and 0 elsewhere
//   Mask                       kEverywhere or kNowhere; both(a, b)
//   load_where(mask, from)     zeros where the mask is kNowhere: then nothing is read
//   load_first<count>(from)    the first lanes, the others zero; nothing else is read, or written by
//   store_first<count>(to, v)
//   transpose(rows, columns)   columns[i][j] of kLanes rows, in place of rows[j][i]
#pragma once

#if defined(__AVX512F__) && defined(__AVX512BW__)
#include "ops/processor/lanes_avx512.h"
#else
#include "ops/processor/lanes_avx2.h"
#endif

namespace mox::lanes {
inline namespace MOX_LANES {

// Of a cache line: whether one vector fills it. Halves of lines do not go around the caches well.
inline constexpr bool kFillsLine = kLanes * sizeof(float) == 64;

inline void finish_streams() { _mm_sfence(); }

}  // namespace MOX_LANES
}  // namespace mox::lanes
