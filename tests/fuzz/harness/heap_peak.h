// How much memory a piece of a program takes from the heap at its height.
#pragma once

#include <cstddef>

namespace mox::fuzz {

// From now on the peak is counted from what is held at this moment; all threads count.
void restart_heap_peak();

// The largest number of bytes held at one time since then, beyond what was held at that moment.
size_t heap_peak();

// How many bytes a compressed input decodes to; 0 where it is not compressed. A target whose inputs may be
// has a definition of its own, which takes the place of this one.
size_t decoded_bytes(const unsigned char* data, size_t size);

// Smaller inputs may take 1 MiB more than their size allows, for what a reader takes at any
// size (tables, buffers).
inline constexpr size_t kSmallInput = 16 << 10;

// How many bytes the heap may take for an input of `size` bytes: 16 times the input, or what it decodes to
// where that is more. A target of another bound has a definition of its own.
size_t allowed_heap(const unsigned char* data, size_t size);

}  // namespace mox::fuzz
