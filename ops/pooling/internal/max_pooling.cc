#include "ops/pooling/internal/max_pooling.h"

#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "ops/processor/bfloat16_lanes.h"
#include "ops/processor/onednn.h"

namespace mox {
namespace {

constexpr int kLanes = 8;

// The pixels of one window that lie inside of the image.
struct Window {
  int64_t first_row, last_row, first_column, last_column;  // last: one past
};
Window window_at(const WindowGeometry& geometry, int64_t i, int64_t j) {
  auto clip = [](const WindowAxis& axis, int64_t position, int64_t* first, int64_t* last) {
    const int64_t start = position * axis.stride - axis.before;
    *first = std::max<int64_t>(start, 0);
    *last = std::min(start + axis.size, axis.input);
  };
  Window window;
  clip(geometry[0], i, &window.first_row, &window.last_row);
  clip(geometry[1], j, &window.first_column, &window.last_column);
  return window;
}

// visit(offset of the pixel, its position in the window)
template <typename Visit>
void for_each_pixel(const Window& window, int64_t row_stride, int64_t pixel_stride, const Visit& visit) {
  int position = 0;
  for (int64_t row = window.first_row; row < window.last_row; ++row)
    for (int64_t column = window.first_column; column < window.last_column; ++column)
      visit(row * row_stride + column * pixel_stride, position++);
}

// The loops over one window, for one channel and for kLanes of them.

template <typename Element, typename Winner>
void largest(const Window& window, int64_t row_stride, int64_t pixel_stride, const Element* x, Element* y,
             Winner* winner) {
  // Every window has a pixel: padding is smaller than the window.
  auto best = static_cast<float>(x[window.first_row * row_stride + window.first_column * pixel_stride]);
  int place = 0;
  for_each_pixel(window, row_stride, pixel_stride, [&](int64_t offset, int position) {
    const auto value = static_cast<float>(x[offset]);
    if (!(value > best) && value == value) return;  // NaN wins, and only NaN wins over it
    best = value;
    place = position;
  });
  *y = static_cast<Element>(best);
  if (winner) *winner = static_cast<Winner>(place);
}

template <typename Winner>
void gather(const Window& window, int64_t row_stride, int64_t pixel_stride, const float* x,
            const Winner* winner, float* y) {
  for_each_pixel(window, row_stride, pixel_stride, [&](int64_t offset, int position) {
    if (*winner == position) *y = x[offset];
  });
}

void store_places(uint8_t* winner, __m256i place) {
  const __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(place), _mm256_extracti128_si256(place, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(winner), _mm_packus_epi16(words, words));
}
void store_places(int32_t* winner, __m256i place) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(winner), place);
}
__m256i load_places(const uint8_t* winner) {
  return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(winner)));
}
__m256i load_places(const int32_t* winner) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(winner));
}

// kVectors * kLanes channels. Two vectors share the walk over the window.
template <int kVectors, typename Element, typename Winner>
void largest_lanes(const Window& window, int64_t row_stride, int64_t pixel_stride, const Element* x,
                   Element* y, Winner* winner) {
  const Element* first = x + window.first_row * row_stride + window.first_column * pixel_stride;
  __m256 best[kVectors];
  __m256i place[kVectors];
  for (int v = 0; v < kVectors; ++v) {
    best[v] = load_lanes(first + v * kLanes);
    place[v] = _mm256_setzero_si256();
  }
  for_each_pixel(window, row_stride, pixel_stride, [&](int64_t offset, int position) {
    const __m256i here = _mm256_set1_epi32(position);
    for (int v = 0; v < kVectors; ++v) {
      const __m256 value = load_lanes(x + offset + v * kLanes);
      const __m256 wins =
          _mm256_or_ps(_mm256_cmp_ps(value, best[v], _CMP_GT_OQ), _mm256_cmp_ps(value, value, _CMP_UNORD_Q));
      best[v] = _mm256_blendv_ps(best[v], value, wins);
      place[v] = _mm256_blendv_epi8(place[v], here, _mm256_castps_si256(wins));
    }
  });
  for (int v = 0; v < kVectors; ++v) {
    store_lanes(y + v * kLanes, best[v]);
    if (winner) store_places(winner + v * kLanes, place[v]);
  }
}

template <int kVectors, typename Winner>
void gather_lanes(const Window& window, int64_t row_stride, int64_t pixel_stride, const float* x,
                  const Winner* winner, float* y) {
  for (int v = 0; v < kVectors; ++v) {
    const __m256i place = load_places(winner + v * kLanes);
    __m256 value = _mm256_setzero_ps();
    for_each_pixel(window, row_stride, pixel_stride, [&](int64_t offset, int position) {
      const __m256i won = _mm256_cmpeq_epi32(place, _mm256_set1_epi32(position));
      value = _mm256_blendv_ps(value, _mm256_loadu_ps(x + offset + v * kLanes), _mm256_castsi256_ps(won));
    });
    _mm256_storeu_ps(y + v * kLanes, value);
  }
}

// lanes.operator()<vectors>(window, offset of the channels in x's image, in y's image), or one(...) for the
// channels that are left.
template <typename Lanes, typename One>
void for_each_window(const MaxPooling& pooling, const Lanes& lanes, const One& one) {
  const int64_t width = pooling.image.width;
  for (int64_t i = 0; i < pooling.geometry[0].output; ++i)
    for (int64_t j = 0; j < pooling.geometry[1].output; ++j) {
      const Window window = window_at(pooling.geometry, i, j);
      const int64_t pooled = (i * pooling.geometry[1].output + j) * width;
      int64_t c = 0;
      for (; c + 2 * kLanes <= width; c += 2 * kLanes) lanes.template operator()<2>(window, c, pooled + c);
      for (; c + kLanes <= width; c += kLanes) lanes.template operator()<1>(window, c, pooled + c);
      for (; c < width; ++c) one(window, c, pooled + c);
    }
}

// body(first element of the image in x, in y) for every image of a block of channels.
template <typename Body>
void for_each_image(const MaxPooling& pooling, const Team& team, const Body& body) {
  const ChannelView& view = pooling.image;
  const int64_t size = view.inner * view.width, pooled_size = pooling.pooled_pixels() * view.width;
  team.parallel_for(view.outer * view.blocks, 1 + 8192 / (size + 1), [&](int64_t begin, int64_t end) {
    for (int64_t image = begin; image < end; ++image) body(image * size, image * pooled_size);
  });
}

// The windows that hold one pixel of an axis: [first, last).
class Covering {
 public:
  explicit Covering(const WindowAxis& axis) : axis_(axis) {}
  // To a pixel that is not before the last one.
  void move_to(int64_t pixel) {
    while (last < axis_.output && last * axis_.stride - axis_.before <= pixel) ++last;
    while (first < last && first * axis_.stride - axis_.before + axis_.size <= pixel) ++first;
  }
  int64_t first = 0, last = 0;

 private:
  const WindowAxis& axis_;
};

// visit(window's place in y, position of the pixel in the window) for each window that holds a pixel, in the
// windows' order.
template <typename Visit>
void for_each_covering(const MaxPooling& pooling, const Covering& rows, const Covering& columns, int64_t row,
                       int64_t column, const Visit& visit) {
  for (int64_t i = rows.first; i < rows.last; ++i)
    for (int64_t j = columns.first; j < columns.last; ++j) {
      const Window window = window_at(pooling.geometry, i, j);
      const int64_t position = (row - window.first_row) * (window.last_column - window.first_column) +
                               column - window.first_column;
      visit(i * pooling.geometry[1].output + j, position);
    }
}

// One pixel of dx: the sum over the windows that it won.
template <int kVectors, typename Element, typename Winner>
void sum_lanes(const MaxPooling& pooling, const Covering& rows, const Covering& columns, int64_t row,
               int64_t column, const Element* dy, const Winner* winner, Element* dx) {
  const int64_t width = pooling.image.width;
  __m256 sum[kVectors];
  for (int v = 0; v < kVectors; ++v) sum[v] = _mm256_setzero_ps();
  for_each_covering(pooling, rows, columns, row, column, [&](int64_t place, int64_t position) {
    const __m256i here = _mm256_set1_epi32(position);
    for (int v = 0; v < kVectors; ++v) {
      const int64_t at = place * width + v * kLanes;
      const __m256i won = _mm256_cmpeq_epi32(load_places(winner + at), here);
      sum[v] = _mm256_add_ps(sum[v], _mm256_and_ps(load_lanes(dy + at), _mm256_castsi256_ps(won)));
    }
  });
  for (int v = 0; v < kVectors; ++v) store_lanes(dx + v * kLanes, sum[v]);
}

template <typename Element, typename Winner>
void sum_one(const MaxPooling& pooling, const Covering& rows, const Covering& columns, int64_t row,
             int64_t column, const Element* dy, const Winner* winner, Element* dx) {
  const int64_t width = pooling.image.width;
  float sum = 0;
  for_each_covering(pooling, rows, columns, row, column, [&](int64_t place, int64_t position) {
    sum += winner[place * width] == position ? static_cast<float>(dy[place * width]) : 0.0f;
  });
  *dx = static_cast<Element>(sum);
}

// Windows of one pixel, as in the shortcuts of residual units: pixels are copied. (Padding is smaller than
// the window, so there is none.)
bool has_windows_of_one_pixel(const MaxPooling& pooling) {
  return pooling.geometry[0].size == 1 && pooling.geometry[1].size == 1;
}

template <typename Element>
void copy_pixel(const Element* from, Element* to, int64_t width) {
  constexpr int64_t kUsual = 16;  // a length that is known makes it a load and a store
  if (width == kUsual)
    std::memcpy(to, from, kUsual * sizeof(Element));
  else
    std::memcpy(to, from, width * sizeof(Element));
}

// visit(the pixel's offset in x, in y) for the windows of a row.
template <typename Visit>
void for_each_single_pixel(const MaxPooling& pooling, int64_t row, const Visit& visit) {
  const int64_t width = pooling.image.width;
  const WindowAxis &rows = pooling.geometry[0], &columns = pooling.geometry[1];
  int64_t from = row * rows.stride * columns.input * width, to = row * columns.output * width;
  for (int64_t j = 0; j < columns.output; ++j, from += columns.stride * width, to += width) visit(from, to);
}

template <typename Element, typename Winner>
void take_single_pixels(const MaxPooling& pooling, const Element* x, Element* y, Winner* winner,
                        const Team& team) {
  const int64_t width = pooling.image.width;
  for_each_image(pooling, team, [&](int64_t first, int64_t pooled) {
    for (int64_t i = 0; i < pooling.geometry[0].output; ++i)
      for_each_single_pixel(pooling, i, [&](int64_t from, int64_t to) {
        copy_pixel(x + first + from, y + pooled + to, width);
      });
    if (winner) std::fill_n(winner + pooled, pooling.pooled_pixels() * width, Winner{0});
  });
}

template <typename Element>
void put_single_pixels(const MaxPooling& pooling, const Element* dy, Element* dx, const Team& team) {
  const int64_t width = pooling.image.width, row = pooling.geometry[1].input * width;
  const WindowAxis& rows = pooling.geometry[0];
  for_each_image(pooling, team, [&](int64_t first, int64_t pooled) {
    for (int64_t i = 0; i < rows.input; ++i) {
      std::fill_n(dx + first + i * row, row, Element{});
      if (i % rows.stride == 0 && i / rows.stride < rows.output)
        for_each_single_pixel(pooling, i / rows.stride, [&](int64_t to, int64_t from) {
          copy_pixel(dy + pooled + from, dx + first + to, width);
        });
    }
  });
}

std::optional<dnnl::memory::format_tag> tag_of(const FollowedLayout& followed) {
  using Tag = dnnl::memory::format_tag;
  if (followed.view.width == 1) return Tag::nchw;
  if (followed.layout.blocks().empty()) return Tag::nhwc;
  if (followed.view.width == 8) return Tag::nChw8c;
  if (followed.view.width == 16) return Tag::nChw16c;
  return std::nullopt;
}

}  // namespace

FollowedLayout follow_image(const TensorType& type, const Layout& layout) {
  FollowedLayout followed = follow_layout(type, layout);
  return tag_of(followed) ? followed : follow_layout(type, Layout::plain(type));
}

Layout layout_in(const TensorType& image, const FollowedLayout& followed) {
  if (image.shape.elements() == 0) return Layout::plain(image);
  return onednn::layout_of(image, {dnnl::memory::dims(image.shape.begin(), image.shape.end()),
                                   onednn::data_type_of(image.dtype), *tag_of(followed)});
}

template <typename Element, typename Winner>
void max_pool_forward(const MaxPooling& pooling, const Element* x, Element* y, Winner* winner,
                      const Team& team) {
  if (has_windows_of_one_pixel(pooling)) return take_single_pixels(pooling, x, y, winner, team);
  const int64_t width = pooling.image.width, row = pooling.geometry[1].input * width;
  for_each_image(pooling, team, [&](int64_t first, int64_t pooled) {
    const Element* image = x + first;
    Element* result = y + pooled;
    Winner* places = winner ? winner + pooled : nullptr;
    for_each_window(
        pooling,
        [&]<int kVectors>(const Window& window, int64_t c, int64_t at) {
          largest_lanes<kVectors>(window, row, width, image + c, result + at, places ? places + at : nullptr);
        },
        [&](const Window& window, int64_t c, int64_t at) {
          largest(window, row, width, image + c, result + at, places ? places + at : nullptr);
        });
  });
}

template <typename Element, typename Winner>
void max_pool_scatter(const MaxPooling& pooling, const Element* dy, const Winner* winner, Element* dx,
                      const Team& team) {
  if (has_windows_of_one_pixel(pooling)) return put_single_pixels(pooling, dy, dx, team);
  const int64_t width = pooling.image.width;
  for_each_image(pooling, team, [&](int64_t first, int64_t pooled) {
    Element* pixel = dx + first;
    const Element* gradient = dy + pooled;
    const Winner* places = winner + pooled;
    Covering rows(pooling.geometry[0]);
    for (int64_t i = 0; i < pooling.geometry[0].input; ++i) {
      rows.move_to(i);
      Covering columns(pooling.geometry[1]);
      for (int64_t j = 0; j < pooling.geometry[1].input; ++j, pixel += width) {
        columns.move_to(j);
        int64_t c = 0;
        for (; c + 2 * kLanes <= width; c += 2 * kLanes)
          sum_lanes<2>(pooling, rows, columns, i, j, gradient + c, places + c, pixel + c);
        for (; c + kLanes <= width; c += kLanes)
          sum_lanes<1>(pooling, rows, columns, i, j, gradient + c, places + c, pixel + c);
        for (; c < width; ++c) sum_one(pooling, rows, columns, i, j, gradient + c, places + c, pixel + c);
      }
    }
  });
}

template <typename Winner>
void max_pool_gather(const MaxPooling& pooling, const float* x, const Winner* winner, float* y,
                     const Team& team) {
  const int64_t width = pooling.image.width, row = pooling.geometry[1].input * width;
  for_each_image(pooling, team, [&](int64_t first, int64_t pooled) {
    const float* image = x + first;
    float* result = y + pooled;
    const Winner* places = winner + pooled;
    for_each_window(
        pooling,
        [&]<int kVectors>(const Window& window, int64_t c, int64_t at) {
          gather_lanes<kVectors>(window, row, width, image + c, places + at, result + at);
        },
        [&](const Window& window, int64_t c, int64_t at) {
          gather(window, row, width, image + c, places + at, result + at);
        });
  });
}

template void max_pool_forward(const MaxPooling&, const float*, float*, uint8_t*, const Team&);
template void max_pool_forward(const MaxPooling&, const float*, float*, int32_t*, const Team&);
template void max_pool_forward(const MaxPooling&, const BFloat16*, BFloat16*, uint8_t*, const Team&);
template void max_pool_forward(const MaxPooling&, const BFloat16*, BFloat16*, int32_t*, const Team&);
template void max_pool_scatter(const MaxPooling&, const float*, const uint8_t*, float*, const Team&);
template void max_pool_scatter(const MaxPooling&, const float*, const int32_t*, float*, const Team&);
template void max_pool_scatter(const MaxPooling&, const BFloat16*, const uint8_t*, BFloat16*, const Team&);
template void max_pool_scatter(const MaxPooling&, const BFloat16*, const int32_t*, BFloat16*, const Team&);
template void max_pool_gather(const MaxPooling&, const float*, const uint8_t*, float*, const Team&);
template void max_pool_gather(const MaxPooling&, const float*, const int32_t*, float*, const Team&);

}  // namespace mox
