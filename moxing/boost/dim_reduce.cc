#include "moxing/boost/dim_reduce.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

#include "moxing/json/number_lists.h"
#include "moxing/json/whole_number.h"
#include "runtime/base/conflict.h"
#include "runtime/base/error.h"
#include "runtime/comm/allgather_values.h"

namespace mox::boost {
namespace {

constexpr int64_t kWorkerColumns = 16 * kTileColumns;  // columns that a worker takes

std::span<float> columns_of(std::vector<float>& all, int64_t first, int64_t count) {
  return std::span(all).subspan(first, count);
}

constexpr size_t kMostTrials = 1024;  // of a step, far above what dim_reduce.max_search may be

int64_t whole_count(double number) {
  constexpr double kLargest = int64_t{1} << 53;  // a double tells all whole numbers below it
  if (!(number >= 0 && number <= kLargest && number == std::floor(number)))
    throw DataError(fmt::format("{} is no count", number));
  return static_cast<int64_t>(number);
}

int64_t whole_tiles(int64_t columns) { return (columns + kTileColumns - 1) / kTileColumns * kTileColumns; }

}  // namespace

FailedSearch failed_search_from_string(std::string_view text) {
  if (text == "skip") return FailedSearch::kSkip;
  if (text == "shrink") return FailedSearch::kShrink;
  if (text == "stop") return FailedSearch::kStop;
  throw InvalidArgument(
      fmt::format("dim_reduce.on_failed_search is '{}'; it can be skip, shrink or stop", text));
}

void require_options(const SearchOptions& options) {
  const auto require = [](bool holds, const char* name, double value, const char* range) {
    if (!holds) throw InvalidArgument(fmt::format("dim_reduce.{} is {}; it must be {}", name, value, range));
  };
  require(options.rho > 0 && options.rho < 1, "rho", options.rho, "between 0 and 1");
  require(options.gamma >= 0 && options.gamma < 1, "gamma", options.gamma, "at least 0 and below 1");
  require(options.alpha >= 0 && std::isfinite(options.alpha), "alpha", options.alpha, "at least 0");
  require(options.sigma > 0 && options.sigma < 1, "sigma", options.sigma, "between 0 and 1");
  require(options.max_search >= 1, "max_search", options.max_search, "at least 1");
}

DimReduce::DimReduce(Basis basis, const SearchOptions& options, Communicator& ranks, Workers workers)
    : basis_(std::move(basis)),
      options_(options),
      ranks_(ranks),
      workers_(std::move(workers)),
      search_(basis_.components()) {
  require_options(options);
  identity_ = basis_.identity(ranks_, workers_);
  counts_.accepted.assign(options.max_search, 0);
  residual_.assign(whole_tiles(basis_.chunks().columns()), 0.0F);
  weights_before_ = way_ = residual_;
}

// Chunk by chunk, and the chunks' sums in their order over all ranks.
std::vector<double> DimReduce::coordinates(const FlatArrays& gradient, float scale) const {
  const size_t k = basis_.components();
  std::vector<double> own(basis_.own_chunks().count * k, 0.0);
  workers_(basis_.own_chunks().count, [&](int64_t index) {
    const std::span<double> sums = std::span(own).subspan(index * k, k);
    const IndexRange chunk = basis_.chunks().chunk(basis_.own_chunks().first + index);
    std::array<float, kTileColumns> g;
    for (int64_t first = chunk.first; first < chunk.end(); first += kTileColumns) {
      const int64_t count = std::min(kTileColumns, chunk.end() - first);
      g.fill(0);
      gradient.read(first, std::span(g).first(count));
      for (float& value : g) value *= scale;
      basis_.add_products((first - basis_.own_columns().first) / kTileColumns, g.data(), sums);
    }
  });
  std::vector<double> result(k, 0.0);
  for (const std::vector<double>& theirs : allgather_values(ranks_, own))
    for (size_t at = 0; at < theirs.size(); at += k)
      for (size_t i = 0; i < k; ++i) result[i] += theirs[at + i];
  return result;
}

// Tile by tile; the columns begin and end with a chunk.
void DimReduce::each_tile(IndexRange columns, FunctionRef<void(int64_t first, int64_t count)> body) const {
  workers_((columns.count + kWorkerColumns - 1) / kWorkerColumns, [&](int64_t index) {
    const int64_t begin = columns.first + index * kWorkerColumns,
                  end = std::min(begin + kWorkerColumns, columns.end());
    for (int64_t first = begin; first < end; first += kTileColumns)
      body(first, std::min(kTileColumns, end - first));
  });
}

// Every rank gets the others' slices.
void DimReduce::share(std::vector<float>& columns) const {
  if (ranks_.size() == 1) return;
  for (int rank = 0; rank < ranks_.size(); ++rank) {
    const IndexRange slice = basis_.chunks().columns_of(rank, ranks_.size());
    if (slice.count > 0)
      ranks_.broadcast(std::as_writable_bytes(std::span(columns).subspan(slice.first, slice.count)), rank);
  }
}

DimReduce::Outcome DimReduce::step(const FlatArrays& gradient, double gradient_scale, double loss,
                                   const FlatArrays& weights, FunctionRef<double()> loss_of_trial) {
  MOX_ASSERT(gradient.columns() == basis_.chunks().columns() && weights.columns() == gradient.columns(),
             "as many weights as the basis has columns");
  const float scale = gradient_scale;
  const std::vector<double> projected = coordinates(gradient, scale);
  if (!std::ranges::all_of(projected, [](double value) { return std::isfinite(value); }))
    throw NumericError(
        "the gradient's coordinates in the subspace are not finite: the gradient is NaN or infinite");
  const SubspaceSearch::State before = search_.state();
  if (options_.on_failed_search == FailedSearch::kStop) residual_before_ = residual_;
  set_out(gradient, scale, search_.begin(projected), projected, weights);
  const Outcome outcome = try_lengths(loss, weights, loss_of_trial);
  ++counts_.steps;
  counts_.trials += outcome.trials;
  counts_.failed += outcome.failed ? 1 : 0;
  if (outcome.stop) {
    search_.restore(before);
    residual_.swap(residual_before_);
    each_tile(all_columns(), [&](int64_t first, int64_t count) {
      weights.write(first, columns_of(weights_before_, first, count));
    });
    return outcome;
  }
  if (outcome.length > 0)
    search_.accept(outcome.length);
  else
    search_.withdraw();
  leave_trials(outcome.length > 0, weights);
  return outcome;
}

// The way and the momentum outside of the subspace, and the weights of the first trial.
void DimReduce::set_out(const FlatArrays& gradient, float scale, std::span<const double> direction,
                        std::span<const double> coordinates, const FlatArrays& weights) {
  const std::vector<float> d(direction.begin(), direction.end()), c(coordinates.begin(), coordinates.end());
  const bool is_alone = ranks_.size() == 1;
  each_tile(basis_.own_columns(), [&](int64_t first, int64_t count) {
    go_outside(gradient, scale, d, c, {first, count});
    if (is_alone) begin_trials(weights, {first, count});
  });
  if (is_alone) return;
  share(way_);
  share(residual_);
  each_tile(all_columns(), [&](int64_t first, int64_t count) { begin_trials(weights, {first, count}); });
}

// Trial after trial, until one brings what it must. The weights are then those of the last.
DimReduce::Outcome DimReduce::try_lengths(double loss, const FlatArrays& weights,
                                          FunctionRef<double()> loss_of_trial) {
  Outcome outcome{.length = 1, .failed = true};
  for (int64_t m = 0; outcome.failed && m < options_.max_search; ++m) {
    if (m > 0) {
      outcome.length *= options_.rho;
      write_trial(outcome.length, weights);
    }
    ++outcome.trials;
    if (loss_of_trial() < loss + options_.sigma * outcome.length * search_.slope()) {
      outcome.failed = false;
      ++counts_.accepted[m];
    }
  }
  if (outcome.failed && options_.on_failed_search != FailedSearch::kShrink) outcome.length = 0;
  outcome.stop = outcome.failed && options_.on_failed_search == FailedSearch::kStop;
  return outcome;
}

// Of one tile: the way and the momentum outside of the subspace, for which P is read once.
void DimReduce::go_outside(const FlatArrays& gradient, float scale, std::span<const float> direction,
                           std::span<const float> coordinates, IndexRange tile) {
  std::array<float, kTileColumns> g, inside;
  g.fill(0);
  gradient.read(tile.first, std::span(g).first(tile.count));
  basis_.combine((tile.first - basis_.own_columns().first) / kTileColumns, direction, coordinates,
                 way_.data() + tile.first, inside.data());
  const float gamma = options_.gamma;
  float* r = residual_.data() + tile.first;
  for (int64_t j = 0; j < kTileColumns; ++j) r[j] = gamma * r[j] + (scale * g[j] - inside[j]);
}

// Of one tile: the weights are kept, and those of the first trial take their place.
void DimReduce::begin_trials(const FlatArrays& weights, IndexRange tile) {
  const std::span<float> before = columns_of(weights_before_, tile.first, tile.count);
  weights.read(tile.first, before);
  std::array<float, kTileColumns> trial;
  const float* u = way_.data() + tile.first;
  for (int64_t j = 0; j < tile.count; ++j) trial[j] = before[j] + u[j];
  weights.write(tile.first, std::span(trial).first(before.size()));
}

// Weights of a trial of that length, shorter than the first.
void DimReduce::write_trial(double length, const FlatArrays& weights) {
  const float by = length;
  each_tile(all_columns(), [&](int64_t first, int64_t count) {
    std::array<float, kTileColumns> trial;
    const float *w = weights_before_.data() + first, *u = way_.data() + first;
    for (int64_t j = 0; j < kTileColumns; ++j) trial[j] = w[j] + by * u[j];
    weights.write(first, std::span(trial).first(count));
  });
}

// The weights are those of the last trial; they stay if it `counts`, else what was before comes back. Then
// the step outside of the subspace.
void DimReduce::leave_trials(bool counts, const FlatArrays& weights) {
  const float alpha = options_.alpha;
  each_tile(all_columns(), [&](int64_t first, int64_t count) {
    std::array<float, kTileColumns> moved;
    const auto own = std::span(moved).first(count);
    if (counts)
      weights.read(first, own);
    else
      std::ranges::copy(columns_of(weights_before_, first, count), own.begin());
    const float* r = residual_.data() + first;
    for (int64_t j = 0; j < count; ++j) moved[j] -= alpha * r[j];
    weights.write(first, own);
  });
}

Array DimReduce::residual() const {
  const int64_t columns = basis_.chunks().columns();
  return Array::from<float>({columns}, std::span(residual_).first(columns));
}

std::string DimReduce::save_state() const {
  const SubspaceSearch::State state = search_.state();
  return nlohmann::json({{"basis", identity_},
                         {"b", state.b},
                         {"last_gradient", state.last_gradient},
                         {"last_step", state.last_step},
                         {"steps", counts_.steps},
                         {"failed", counts_.failed},
                         {"trials", counts_.trials},
                         {"accepted", counts_.accepted}})
      .dump();
}

void DimReduce::restore(const std::string& state, const Array& residual, const std::string& path) {
  SubspaceSearch::State search;
  Counts counts;
  std::string identity;
  try {
    const NumberLists read(state, path);
    identity = read.value("basis").get<std::string>();
    search = {read.list("b"), read.list("last_gradient"), read.list("last_step")};
    counts = {
        count_in(read.value("steps")), count_in(read.value("failed")), count_in(read.value("trials")), {}};
    if (read.list("accepted").size() > kMostTrials) throw DataError("counts of more trials than a step has");
    std::ranges::transform(read.list("accepted"), std::back_inserter(counts.accepted), whole_count);
  } catch (const std::exception& error) {
    throw DataError(fmt::format("the checkpoint '{}' holds no state of dimension-reduced training ({})", path,
                                error.what()));
  }
  if (identity != identity_)
    throw Conflict(fmt::format(
        "the run in '{}' went on in the subspace of another basis ({}) than the one given now ({}): "
        "give it the pca_mat.npy, the n_components and the basis_dtype of before, or begin stage 2 "
        "anew in another log_dir with --checkpoint_path={}",
        path, identity, identity_, path));
  if (residual.dtype() != DType::kFloat32 || residual.elements() != basis_.chunks().columns())
    throw DataError(
        fmt::format("the checkpoint '{}' has the residual momentum as {}; the model has {} weights", path,
                    to_string(residual.type()), basis_.chunks().columns()));
  search_.restore(search);
  counts.accepted.resize(std::max(counts.accepted.size(), counts_.accepted.size()));
  counts_ = std::move(counts);
  std::ranges::copy(residual.values<float>(), residual_.begin());
}

}  // namespace mox::boost
