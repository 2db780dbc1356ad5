// The loops of pointwise_filter_tasks.h (ops/processor/lanes.h).
//
// Terms are packed chunk by chunk into panels in the core's L2 cache, dy as panels [terms][a vector of outs]
// and x as panels [terms][kPanelBlocks vectors of ins]; then blocks of sums in registers, four rows of a
// panel of x, run over the terms of a chunk. Products fill the processor's units for products and leave the
// others idle, so the next chunk is packed between them, a few terms at a time, and what will be packed is
// fetched from memory before.
//
// `Terms` says what a term is: its Element, kPositions (how many positions a term has), add_product(sums, a,
// b), and pack(lines, to), which makes a vector of terms from as many channels of kPositions positions.
#pragma once

#include <algorithm>

#include "ops/convolution/internal/pointwise_filter_tasks.h"
#include "ops/processor/lanes.h"

namespace mox::pointwise_filter {
inline namespace MOX_LANES {

using namespace lanes;

// Blocks of channels in a panel of packed x: with four rows of dy, 16 sums in 32 registers or eight in 16.
inline constexpr int64_t kPanelBlocks = panel_blocks(kLanes);

inline constexpr int64_t kSlice = 4;          // terms that are packed at a time
inline constexpr int64_t kFetchedSlices = 8;  // that are on their way from memory
inline constexpr int64_t kTermsAtATime = 8;   // between two looks at what is to be packed

// One of the two images, as the left or the right side of the product.
template <typename Terms>
struct Side {
  using Element = typename Terms::Element;

  const Element* image = nullptr;  // the first block of channels
  int64_t plane = 0;               // elements from a block of channels to the next
  int64_t blocks = 0, panel_blocks = 1;
  bool is_dense = true;  // positions of a row are neighbours in memory
  float* panels = nullptr;
  int64_t offsets[kMostTerms * Terms::kPositions];  // elements from `image` to a position

  // The positions [first, first + count) of rows that lie `row` elements apart, `rows` of them in an image,
  // and images `step`.
  void set_positions(int64_t first, int64_t count, int64_t width, int64_t column, int64_t rows, int64_t row,
                     int64_t step) {
    int64_t x = first % width, y = first / width % rows, n = first / width / rows;
    for (int64_t i = 0; i < count;) {
      const int64_t there = std::min(count - i, width - x), start = n * step + y * row + x * column;
      for (int64_t j = 0; j < there; ++j) offsets[i + j] = start + j * column;
      i += there;
      x = 0;
      if (++y == rows) {
        y = 0;
        ++n;
      }
    }
  }
};

// Packs the terms of a chunk slice by slice: those of dy first, then those of x.
template <typename Terms>
class Packer {
 public:
  using Element = typename Terms::Element;

  Packer(const Problem& problem, const Element* x, const Element* dy) : p_(problem), x_(x), dy_(dy) {}

  // Has a chunk of a task packed into `panels`, within `turns` calls of take_turn.
  void start(const Task& task, int64_t chunk, float* panels, int64_t turns) {
    const int64_t first = chunk * p_.chunk;
    positions_ = std::min(p_.chunk, p_.positions() - first);
    terms_ = (positions_ + Terms::kPositions - 1) / Terms::kPositions;
    const int64_t y_pixels = p_.out_height * p_.out_width, x_pixels = p_.in_height * p_.in_width;
    Side<Terms>& left = sides_[0];
    left.image = dy_ + task.first_out * y_pixels;
    left.plane = y_pixels * kLanes;
    left.blocks = task.outs / kLanes;
    left.panel_blocks = 1;
    left.panels = panels;
    left.set_positions(first, positions_, y_pixels, kLanes, 1, 0, p_.out_channels * y_pixels);
    Side<Terms>& right = sides_[1];
    right.image = x_ + task.first_in * x_pixels;
    right.plane = x_pixels * kLanes;
    right.blocks = task.ins / kLanes;
    right.panel_blocks = kPanelBlocks;
    right.panels = panels + task.outs * kMostTerms;
    right.is_dense = p_.stride_x == 1;
    if (p_.stride_x == 1 && p_.stride_y == 1)
      right.set_positions(first, positions_, x_pixels, kLanes, 1, 0, p_.in_channels * x_pixels);
    else
      right.set_positions(first, positions_, p_.out_width, p_.stride_x * kLanes, p_.out_height,
                          p_.stride_y * p_.in_width * kLanes, p_.in_channels * x_pixels);
    turns_ = turns;
    slices_ = (terms_ + kSlice - 1) / kSlice * (left.blocks + right.blocks);
    due_ = 0;
    at_ = ahead_ = {};
    for (int64_t i = 0; i < kFetchedSlices; ++i) fetch();
  }
  int64_t terms() const { return terms_; }

  void take_turn() {
    for (due_ += slices_; due_ >= turns_ && at_.side < 2; due_ -= turns_) {
      fetch();
      pack();
    }
  }
  void finish() {
    while (at_.side < 2) {
      fetch();
      pack();
    }
  }

 private:
  struct Cursor {
    int64_t side = 0, block = 0, term = 0;
  };

  void advance(Cursor& cursor) const {
    if ((cursor.term += kSlice) < terms_) return;
    cursor.term = 0;
    if (++cursor.block < sides_[cursor.side].blocks) return;
    cursor.block = 0;
    ++cursor.side;
  }

  void fetch() {
    if (ahead_.side == 2) return;
    const Side<Terms>& side = sides_[ahead_.side];
    const Element* block = side.image + ahead_.block * side.plane;
    const int64_t last = std::min((ahead_.term + kSlice) * Terms::kPositions, positions_);
    const int64_t step = side.is_dense ? Terms::kPositions : 1;  // the positions of a term share a line
    for (int64_t i = ahead_.term * Terms::kPositions; i < last; i += step)
      _mm_prefetch(block + side.offsets[i], _MM_HINT_T0);
    advance(ahead_);
  }

  void pack() {
    constexpr int64_t kPositions = Terms::kPositions;
    const Side<Terms>& side = sides_[at_.side];
    const Element* block = side.image + at_.block * side.plane;
    const int64_t panel = at_.block / side.panel_blocks * side.panel_blocks;
    const int64_t width = std::min(side.panel_blocks, side.blocks - panel) * kLanes;
    const int64_t last = std::min(at_.term + kSlice, terms_), whole = std::min(last, positions_ / kPositions);
    float* to = side.panels + panel * kLanes * kMostTerms + (at_.block - panel) * kLanes + at_.term * width;
    const int64_t* offsets = side.offsets + at_.term * kPositions;
    for (int64_t t = at_.term; t < whole; ++t, offsets += kPositions, to += width)
      Terms::pack(block + offsets[0], block + offsets[kPositions - 1], to);
    alignas(64) static constexpr Element kZeros[kLanes] = {};
    if (whole < last) Terms::pack(block + offsets[0], kZeros, to);
    advance(at_);
  }

  const Problem& p_;
  const Element *x_, *dy_;
  Side<Terms> sides_[2];
  int64_t positions_ = 0, terms_ = 0;
  int64_t slices_ = 0, turns_ = 1, due_ = 0;
  Cursor at_{2, 0, 0}, ahead_{2, 0, 0};
};

// Where sums come from, unless they begin, and go to.
struct Sums {
  const float* from;
  int64_t from_row;
  float* to;
  int64_t to_row;
  bool begin;
};

// Loops over sums are unrolled by pragma where they fill and store them: left to the end, GCC keeps the sums
// on the stack.
template <typename Terms, int Rows, int Vectors>
inline void multiply_block(const float* a, const float* b, const Sums& sums, int64_t row, int64_t column,
                           int64_t terms, Packer<Terms>& packer) {
  const float* from = sums.from + row * sums.from_row + column;
  Vector sum[Rows][Vectors];
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v)
      sum[r][v] = sums.begin ? zero() : load(from + r * sums.from_row + v * kLanes);
  float* to = sums.to + row * sums.to_row + column;
  for (int r = 0; r < Rows; ++r)
    for (int v = 0; v < Vectors; ++v) __builtin_prefetch(to + r * sums.to_row + v * kLanes, 1);
  for (int64_t i = 0; i < terms;) {
    packer.take_turn();
    for (const int64_t end = std::min(terms, i + kTermsAtATime); i < end;
         ++i, a += kLanes, b += Vectors * kLanes) {
      Vector line[Vectors];
      for (int v = 0; v < Vectors; ++v) line[v] = load(b + v * kLanes);
      for (int r = 0; r < Rows; ++r) {
        const Vector scalar = splat(a[r]);
        for (int v = 0; v < Vectors; ++v) sum[r][v] = Terms::add_product(sum[r][v], scalar, line[v]);
      }
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) store(to + r * sums.to_row + v * kLanes, sum[r][v]);
}

// The sums of one panel of x, `Vectors` blocks of channels.
template <typename Terms, int Rows, int Vectors>
void multiply_panel(const float* a, const float* b, const Sums& sums, int64_t outs, int64_t column,
                    int64_t terms, Packer<Terms>& packer) {
  for (int64_t row = 0; row < outs; row += Rows)
    multiply_block<Terms, Rows, Vectors>(a + row / kLanes * kLanes * kMostTerms + row % kLanes, b, sums, row,
                                         column, terms, packer);
}

template <typename Terms>
void multiply(const float* panels, const Sums& sums, const Task& task, int64_t terms, Packer<Terms>& packer) {
  const float* b = panels + task.outs * kMostTerms;
  for (int64_t column = 0; column < task.ins; column += kPanelBlocks * kLanes) {
    const int64_t vectors = std::min(kPanelBlocks, (task.ins - column) / kLanes);
    const auto multiply_by = [&](auto panel) {
      panel(panels, b + column * kMostTerms, sums, task.outs, column, terms, packer);
    };
    if constexpr (kRegisters >= 32)
      multiply_by(vectors == 4   ? multiply_panel<Terms, 4, 4>
                  : vectors == 3 ? multiply_panel<Terms, 4, 3>
                  : vectors == 2 ? multiply_panel<Terms, 8, 2>
                                 : multiply_panel<Terms, 16, 1>);
    else
      multiply_by(vectors == 2 ? multiply_panel<Terms, 4, 2> : multiply_panel<Terms, 8, 1>);
  }
}

template <typename Terms>
void run_tasks(const Problem& p, const typename Terms::Element* x, const typename Terms::Element* dy,
               std::span<const Task> tasks, float* dw, float* scratch) {
  if (tasks.empty()) return;
  float *block = scratch, *panels = block + kMostOut * kMostIn,
        *next_panels = panels + kMostTerms * (kMostOut + kMostIn);
  Packer<Terms> packer(p, x, dy);
  packer.start(tasks[0], tasks[0].first_chunk, panels, 1);
  packer.finish();
  for (size_t t = 0; t < tasks.size(); ++t) {
    const Task& task = tasks[t];
    for (int64_t chunk = task.first_chunk; chunk < task.last_chunk; ++chunk) {
      const int64_t terms = packer.terms();
      const bool begins = chunk == task.first_chunk, ends = chunk + 1 == task.last_chunk;
      const int64_t turns =
          task.outs * task.ins / (kLanes * kLanes) * ((terms + kTermsAtATime - 1) / kTermsAtATime);
      if (!ends)
        packer.start(task, chunk + 1, next_panels, turns);
      else if (t + 1 < tasks.size())
        packer.start(tasks[t + 1], tasks[t + 1].first_chunk, next_panels, turns);
      Sums sums{block, task.ins, block, task.ins, begins};
      if (ends) {
        sums.to = dw + (task.part * p.out_channels + task.first_out) * p.in_channels + task.first_in;
        sums.to_row = p.in_channels;
      }
      multiply(panels, sums, task, terms, packer);
      packer.finish();
      std::swap(panels, next_panels);
    }
  }
}

// One number of float32 is a term.
struct Singles {
  using Element = float;
  static constexpr int64_t kPositions = 1;
  static Vector add_product(Vector sum, Vector a, Vector b) { return multiply_add(a, b, sum); }
  static void pack(const float* line, const float*, float* to) { store(to, load(line)); }
};

}  // namespace MOX_LANES
}  // namespace mox::pointwise_filter
