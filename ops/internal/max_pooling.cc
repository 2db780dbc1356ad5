#include "ops/internal/max_pooling.h"

#include <immintrin.h>

#include <algorithm>

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

template <typename Winner>
void largest(const Window& window, int64_t row_stride, int64_t pixel_stride, const float* x, float* y,
             Winner* winner) {
  // Every window has a pixel: padding is smaller than the window.
  float best = x[window.first_row * row_stride + window.first_column * pixel_stride];
  int place = 0;
  for_each_pixel(window, row_stride, pixel_stride, [&](int64_t offset, int position) {
    const float value = x[offset];
    if (!(value > best) && value == value) return;  // NaN wins, and only NaN wins over it
    best = value;
    place = position;
  });
  *y = best;
  if (winner) *winner = static_cast<Winner>(place);
}

template <typename Winner>
void scatter(const Window& window, int64_t row_stride, int64_t pixel_stride, const float* dy,
             const Winner* winner, float* dx) {
  for_each_pixel(window, row_stride, pixel_stride,
                 [&](int64_t offset, int position) { dx[offset] += *winner == position ? *dy : 0.0f; });
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
template <int kVectors, typename Winner>
void largest_lanes(const Window& window, int64_t row_stride, int64_t pixel_stride, const float* x, float* y,
                   Winner* winner) {
  const float* first = x + window.first_row * row_stride + window.first_column * pixel_stride;
  __m256 best[kVectors];
  __m256i place[kVectors];
  for (int v = 0; v < kVectors; ++v) {
    best[v] = _mm256_loadu_ps(first + v * kLanes);
    place[v] = _mm256_setzero_si256();
  }
  for_each_pixel(window, row_stride, pixel_stride, [&](int64_t offset, int position) {
    const __m256i here = _mm256_set1_epi32(position);
    for (int v = 0; v < kVectors; ++v) {
      const __m256 value = _mm256_loadu_ps(x + offset + v * kLanes);
      const __m256 wins =
          _mm256_or_ps(_mm256_cmp_ps(value, best[v], _CMP_GT_OQ), _mm256_cmp_ps(value, value, _CMP_UNORD_Q));
      best[v] = _mm256_blendv_ps(best[v], value, wins);
      place[v] = _mm256_blendv_epi8(place[v], here, _mm256_castps_si256(wins));
    }
  });
  for (int v = 0; v < kVectors; ++v) {
    _mm256_storeu_ps(y + v * kLanes, best[v]);
    if (winner) store_places(winner + v * kLanes, place[v]);
  }
}

template <bool kAdd, int kVectors, typename Winner>
void scatter_lanes(const Window& window, int64_t row_stride, int64_t pixel_stride, const float* dy,
                   const Winner* winner, float* dx) {
  __m256i place[kVectors];
  __m256 value[kVectors];
  for (int v = 0; v < kVectors; ++v) {
    place[v] = load_places(winner + v * kLanes);
    value[v] = _mm256_loadu_ps(dy + v * kLanes);
  }
  for_each_pixel(window, row_stride, pixel_stride, [&](int64_t offset, int position) {
    const __m256i here = _mm256_set1_epi32(position);
    for (int v = 0; v < kVectors; ++v) {
      float* target = dx + offset + v * kLanes;
      const __m256 share = _mm256_and_ps(value[v], _mm256_castsi256_ps(_mm256_cmpeq_epi32(place[v], here)));
      _mm256_storeu_ps(target, kAdd ? _mm256_add_ps(_mm256_loadu_ps(target), share) : share);
    }
  });
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

// lanes.operator()<vectors>(window, offset of the channels in x's image, in y's image), or one(...) for the channels
// that are left.
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

}  // namespace

template <typename Winner>
void max_pool_forward(const MaxPooling& pooling, const float* x, float* y, Winner* winner, const Team& team) {
  const int64_t width = pooling.image.width, row = pooling.geometry[1].input * width;
  for_each_image(pooling, team, [&](int64_t first, int64_t pooled) {
    const float* image = x + first;
    float* result = y + pooled;
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

template <typename Winner>
void max_pool_scatter(const MaxPooling& pooling, const float* dy, const Winner* winner, float* dx,
                      const Team& team) {
  const int64_t width = pooling.image.width, row = pooling.geometry[1].input * width;
  // Windows that tile the image exactly write every pixel once: nothing to clear, nothing to add to.
  const bool tiles =
      std::all_of(pooling.geometry.begin(), pooling.geometry.end(), [](const WindowAxis& axis) {
        return axis.stride == axis.size && axis.before == 0 && axis.output * axis.stride == axis.input;
      });
  for_each_image(pooling, team, [&](int64_t first, int64_t pooled) {
    float* image = dx + first;
    const float* gradient = dy + pooled;
    const Winner* places = winner + pooled;
    if (!tiles || width % kLanes != 0) std::fill_n(image, pooling.image.inner * width, 0.0f);
    auto one = [&](const Window& window, int64_t c, int64_t at) {
      scatter(window, row, width, gradient + at, places + at, image + c);
    };
    auto add = [&]<int kVectors>(const Window& window, int64_t c, int64_t at) {
      scatter_lanes<true, kVectors>(window, row, width, gradient + at, places + at, image + c);
    };
    auto write = [&]<int kVectors>(const Window& window, int64_t c, int64_t at) {
      scatter_lanes<false, kVectors>(window, row, width, gradient + at, places + at, image + c);
    };
    if (tiles)
      for_each_window(pooling, write, one);
    else
      for_each_window(pooling, add, one);
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
template void max_pool_scatter(const MaxPooling&, const float*, const uint8_t*, float*, const Team&);
template void max_pool_scatter(const MaxPooling&, const float*, const int32_t*, float*, const Team&);
template void max_pool_gather(const MaxPooling&, const float*, const uint8_t*, float*, const Team&);
template void max_pool_gather(const MaxPooling&, const float*, const int32_t*, float*, const Team&);

}  // namespace mox
