#include <algorithm>
#include <compare>
#include <cstring>
#include <type_traits>

#include "moxing/metrics/metric.h"
#include "runtime/base/error.h"

namespace mox::metrics {
namespace {

static_assert(std::is_trivially_copyable_v<double>);

template <typename T>
void append(std::string& bytes, const T& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

template <typename T>
T take(std::string_view& bytes) {
  T value;
  if (bytes.size() < sizeof(T)) throw DataError("the state of a metric ends before its numbers do");
  std::memcpy(&value, bytes.data(), sizeof(T));
  bytes.remove_prefix(sizeof(T));
  return value;
}

}  // namespace

const ExactSum& State::sum(size_t index) const {
  static const ExactSum kNothing;
  return index < sums_.size() ? sums_[index] : kNothing;
}

void State::keep(std::span<const double> row) {
  if (row_length_ == 0) row_length_ = row.size();
  if (row.empty() || row.size() != row_length_)
    throw InvalidArgument(
        "a metric keeps rows of different lengths, or empty ones; all need the same numbers");
  kept_.insert(kept_.end(), row.begin(), row.end());
}

void State::merge(const State& other) {
  if (sums_.size() < other.sums_.size()) sums_.resize(other.sums_.size());
  for (size_t i = 0; i < other.sums_.size(); ++i) sums_[i].add(other.sums_[i]);
  if (other.row_length_ != 0) {
    if (row_length_ != 0 && row_length_ != other.row_length_)
      throw InvalidArgument("a metric keeps rows of different lengths; all need the same numbers");
    row_length_ = other.row_length_;
    kept_.insert(kept_.end(), other.kept_.begin(), other.kept_.end());
  }
  samples_ += other.samples_;
}

void State::sort_kept() {
  if (row_length_ == 0) return;
  std::vector<const double*> rows;
  rows.reserve(kept_.size() / row_length_);
  for (size_t i = 0; i < kept_.size(); i += row_length_) rows.push_back(kept_.data() + i);
  std::ranges::sort(rows, [this](const double* a, const double* b) {
    return std::lexicographical_compare_three_way(
               a, a + row_length_, b, b + row_length_,
               [](double x, double y) { return std::strong_order(x, y); }) == std::strong_ordering::less;
  });
  std::vector<double> sorted;
  sorted.reserve(kept_.size());
  for (const double* row : rows) sorted.insert(sorted.end(), row, row + row_length_);
  kept_ = std::move(sorted);
}

// samples, sums: {number of parts, parts}, row length, numbers kept, the numbers.
std::string State::to_bytes() const {
  std::string bytes;
  append(bytes, samples_);
  append(bytes, static_cast<uint64_t>(sums_.size()));
  for (const ExactSum& sum : sums_) {
    const std::vector<double> parts = sum.parts();
    append(bytes, static_cast<uint8_t>(parts.size()));
    for (const double part : parts) append(bytes, part);
  }
  append(bytes, static_cast<uint64_t>(row_length_));
  append(bytes, static_cast<uint64_t>(kept_.size()));
  bytes.append(reinterpret_cast<const char*>(kept_.data()), kept_.size() * sizeof(double));
  return bytes;
}

State State::from_bytes(std::string_view bytes) {
  State state;
  state.samples_ = take<int64_t>(bytes);
  const auto sums = take<uint64_t>(bytes);
  if (sums > bytes.size()) throw DataError("the state of a metric names more sums than it holds");
  state.sums_.resize(sums);
  for (ExactSum& sum : state.sums_)
    for (auto parts = take<uint8_t>(bytes); parts > 0; --parts) sum.add(take<double>(bytes));
  state.row_length_ = take<uint64_t>(bytes);
  const auto kept = take<uint64_t>(bytes);
  if (kept != bytes.size() / sizeof(double) || bytes.size() % sizeof(double) != 0 || state.samples_ < 0 ||
      (state.row_length_ == 0 ? kept != 0 : kept % state.row_length_ != 0))
    throw DataError("the state of a metric does not hold the rows that it names");
  state.kept_.resize(kept);
  if (kept != 0) std::memcpy(state.kept_.data(), bytes.data(), bytes.size());
  return state;
}

}  // namespace mox::metrics
