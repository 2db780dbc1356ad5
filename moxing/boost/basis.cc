#include "moxing/boost/basis.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/random.h"
#include "runtime/comm/allgather_values.h"

namespace mox::boost {
namespace {

constexpr int64_t kPanelColumns = 16;
static_assert(kTileColumns % kPanelColumns == 0);

// Half a panel's row: two registers hold a row of a panel.
using Lanes [[gnu::vector_size(32)]] = float;
constexpr int64_t kLanes = 8;

// P is asked for so many numbers before they are used: the sums of a panel wait for one another, and what a
// core may do out of order in the meantime does not reach far enough to keep the memory busy.
constexpr int64_t kAhead = 1024;

inline Lanes load(const float* values) {
  Lanes lanes;
  std::memcpy(&lanes, values, sizeof lanes);
  return lanes;
}
inline Lanes load(const BFloat16* values) {
  float wide[kLanes];
  for (int i = 0; i < kLanes; ++i)
    wide[i] = std::bit_cast<float>(static_cast<uint32_t>(values[i].bits) << 16);
  return load(wide);
}
inline void store(Lanes lanes, float* values) { std::memcpy(values, &lanes, sizeof lanes); }

// Each row's products are added up in eight lanes over the tile, and these in a fixed order.
template <typename T>
void add_tile_products(const T* panel, const float* x, std::span<double> sums) {
  std::array<Lanes, kMostComponents> lanes;
  std::fill_n(lanes.begin(), sums.size(), Lanes{});
  for (int64_t j = 0; j < kTileColumns; j += kPanelColumns) {
    const Lanes left = load(x + j), right = load(x + j + kLanes);
    for (size_t i = 0; i < sums.size(); ++i, panel += kPanelColumns) {
      __builtin_prefetch(panel + kAhead);
      lanes[i] += load(panel) * left + load(panel + kLanes) * right;
    }
  }
  for (size_t i = 0; i < sums.size(); ++i)
    sums[i] += static_cast<double>((lanes[i][0] + lanes[i][4]) + (lanes[i][2] + lanes[i][6])) +
               ((lanes[i][1] + lanes[i][5]) + (lanes[i][3] + lanes[i][7]));
}

template <typename T>
void combine_tile(const T* panel, std::span<const float> a, std::span<const float> b, float* u, float* v) {
  for (int64_t j = 0; j < kTileColumns; j += kPanelColumns) {
    Lanes u_left{}, u_right{}, v_left{}, v_right{};
    for (size_t i = 0; i < a.size(); ++i, panel += kPanelColumns) {
      __builtin_prefetch(panel + kAhead);
      const Lanes left = load(panel), right = load(panel + kLanes);
      u_left += a[i] * left;
      u_right += a[i] * right;
      v_left += b[i] * left;
      v_right += b[i] * right;
    }
    store(u_left, u + j);
    store(u_right, u + j + kLanes);
    store(v_left, v + j);
    store(v_right, v + j + kLanes);
  }
}

// body(column, done, count) for pieces of the columns from `first` on that lie in one panel each. Slices
// begin with a panel.
void for_pieces(int64_t first, int64_t columns, auto body) {
  for (int64_t done = 0; done < columns;) {
    const int64_t count = std::min(kPanelColumns - (first + done) % kPanelColumns, columns - done);
    body(first + done, done, count);
    done += count;
  }
}

Array make_panels(int64_t components, int64_t columns, DType dtype) {
  if (components < 1 || components > kMostComponents)
    throw InvalidArgument(fmt::format("a basis has 1 to {} components, got {}", kMostComponents, components));
  if (dtype != DType::kFloat32 && dtype != DType::kBFloat16)
    throw InvalidArgument(fmt::format("a basis is kept in float32 or bfloat16, got {}", to_string(dtype)));
  const int64_t tiles = (columns + kTileColumns - 1) / kTileColumns;
  return Array(dtype, {tiles * (kTileColumns / kPanelColumns), components, kPanelColumns});
}

}  // namespace

Basis::Basis(int64_t components, int64_t columns, int rank, int ranks, DType dtype)
    : components_(components),
      chunks_(columns),
      own_chunks_(chunks_.chunks_of(rank, ranks)),
      own_columns_(chunks_.columns_of(rank, ranks)),
      panels_(make_panels(components, own_columns_.count, dtype)) {}

size_t Basis::offset(int64_t component, int64_t column) const {
  const int64_t at = column - own_columns_.first;
  return (at / kPanelColumns * components_ + component) * kPanelColumns + at % kPanelColumns;
}

void Basis::write(int64_t component, int64_t first_column, std::span<const float> values) {
  for_pieces(first_column, values.size(), [&](int64_t column, int64_t done, int64_t count) {
    const size_t at = offset(component, column);
    const float* from = values.data() + done;
    if (dtype() == DType::kFloat32)
      std::copy_n(from, count, panels_.values<float>().data() + at);
    else
      std::transform(from, from + count, panels_.values<BFloat16>().data() + at,
                     [](float value) { return BFloat16(value); });
  });
}

void Basis::read(int64_t component, int64_t first_column, std::span<float> out) const {
  for_pieces(first_column, out.size(), [&](int64_t column, int64_t done, int64_t count) {
    const size_t at = offset(component, column);
    float* to = out.data() + done;
    if (dtype() == DType::kFloat32)
      std::copy_n(panels_.values<float>().data() + at, count, to);
    else
      std::transform(panels_.values<BFloat16>().data() + at, panels_.values<BFloat16>().data() + at + count,
                     to, [](BFloat16 value) { return static_cast<float>(value); });
  });
}

void Basis::add_products(int64_t tile, const float* x, std::span<double> sums) const {
  const int64_t first = tile * components_ * kTileColumns;
  if (dtype() == DType::kFloat32)
    add_tile_products(panels_.values<float>().data() + first, x, sums);
  else
    add_tile_products(panels_.values<BFloat16>().data() + first, x, sums);
}

void Basis::combine(int64_t tile, std::span<const float> a, std::span<const float> b, float* u,
                    float* v) const {
  const int64_t first = tile * components_ * kTileColumns;
  if (dtype() == DType::kFloat32)
    combine_tile(panels_.values<float>().data() + first, a, b, u, v);
  else
    combine_tile(panels_.values<BFloat16>().data() + first, a, b, u, v);
}

std::string Basis::identity(Communicator& ranks, const Workers& workers) const {
  std::vector<uint32_t> own(own_chunks_.count);
  const auto bytes = panels_.as_bytes();
  const size_t tile_bytes = (components_ * kTileColumns) * size_of(dtype());
  workers(own_chunks_.count, [&](int64_t i) {
    const IndexRange chunk = chunks_.chunk(own_chunks_.first + i);
    const size_t first = (chunk.first - own_columns_.first) / kTileColumns,
                 count = (chunk.count + kTileColumns - 1) / kTileColumns;
    own[i] = crc32(bytes.subspan(first * tile_bytes, count * tile_bytes));
  });
  uint64_t hash = mix_hash(static_cast<uint64_t>(components_), static_cast<uint64_t>(chunks_.columns()));
  hash = mix_hash(hash, static_cast<uint64_t>(dtype()));
  for (const std::vector<uint32_t>& theirs : allgather_values(ranks, own))
    for (const uint32_t sum : theirs) hash = mix_hash(hash, sum);
  return fmt::format("{:016x}", hash);
}

}  // namespace mox::boost
