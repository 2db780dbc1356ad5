#include "ops/support/reduction.h"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "ops/support/internal/reduction_walk.h"
#include "runtime/base/error.h"

namespace mox {
namespace {

constexpr int64_t kFlush = 128;      // numbers added up in a Partial before it goes into the Total
constexpr int64_t kPiece = 1 << 14;  // elements of a long row that are one term
constexpr int64_t kColumns = 1024;   // side by side in one unit: 12 KB of accumulators, a page of every row
constexpr int64_t kTogether = 256;   // accumulators for narrow rows that are taken together
constexpr int64_t kUnits = 32;       // pieces of work to have at least, if the problem allows
constexpr int64_t kGrain = 1 << 14;  // elements for which waking another thread pays off

template <typename T>
struct Sum {
  // Integers are added unsigned: they wrap around.
  using Partial = std::conditional_t<std::is_same_v<T, float>, float, uint64_t>;
  using Total = std::conditional_t<std::is_same_v<T, float>, double, uint64_t>;
  static constexpr Partial kEmpty = 0;
  static Partial add(Partial sum, T x) { return sum + static_cast<Partial>(x); }
  static Partial merge(Partial a, Partial b) { return a + b; }
  static Total collect(Total total, Partial partial) { return total + static_cast<Total>(partial); }
  static Total join(Total a, Total b) { return a + b; }
  static T finish(Total total, double divisor) {
    if constexpr (std::is_same_v<T, float>) return static_cast<float>(total / divisor);
    return static_cast<T>(total);
  }
};

// NaN wins.
template <typename T, bool kLargest>
struct Extreme {
  using Partial = T;
  using Total = T;
  using Limits = std::numeric_limits<T>;
  static constexpr T kEmpty = Limits::has_infinity ? (kLargest ? -Limits::infinity() : Limits::infinity())
                                                   : (kLargest ? Limits::lowest() : Limits::max());
  static T add(T best, T x) {
    const bool keeps = kLargest ? best > x : best < x;
    return (keeps | (best != best)) ? best : x;
  }
  static T merge(T a, T b) { return add(a, b); }
  static T collect(T a, T b) { return add(a, b); }
  static T join(T a, T b) { return add(a, b); }
  static T finish(T total, double) { return total; }
};

// All of `count` elements that lie side by side.
template <typename T, typename Kind>
typename Kind::Total reduce_row(const T* x, int64_t count) {
  using Partial = typename Kind::Partial;
  constexpr int64_t kWidth = 32;
  typename Kind::Total total = Kind::kEmpty;
  while (count >= kWidth) {
    Partial lanes[kWidth];
    std::fill_n(lanes, kWidth, Kind::kEmpty);
    const int64_t rounds = std::min(kFlush, count / kWidth);
    for (int64_t r = 0; r < rounds; ++r, x += kWidth)
      for (int64_t i = 0; i < kWidth; ++i) lanes[i] = Kind::add(lanes[i], x[i]);
    for (int64_t half = kWidth / 2; half > 0; half /= 2)
      for (int64_t i = 0; i < half; ++i) lanes[i] = Kind::merge(lanes[i], lanes[i + half]);
    total = Kind::collect(total, lanes[0]);
    count -= rounds * kWidth;
  }
  Partial rest = Kind::kEmpty;
  for (int64_t i = 0; i < count; ++i) rest = Kind::add(rest, x[i]);
  return Kind::collect(total, rest);
}

// Up to kColumns results side by side, reduced row after row. Narrow rows that follow one another in memory
// are taken several at a time.
template <typename T, typename Kind>
class Columns {
 public:
  explicit Columns(int64_t columns)
      : columns_(columns), together_(std::max<int64_t>(1, kTogether / columns)) {
    std::fill_n(totals_, columns_ * together_, typename Kind::Total{Kind::kEmpty});
    std::fill_n(partials_, columns_ * together_, Kind::kEmpty);
  }

  // Rows at x, x + stride, ...
  void add(const T* x, int64_t rows, int64_t stride) {
    if (stride == columns_)
      for (; rows >= together_; rows -= together_, x += together_ * stride) add_wide(x, together_ * columns_);
    for (; rows > 0; --rows, x += stride) add_wide(x, columns_);
  }

  // The totals of the columns, in place.
  const typename Kind::Total* finish() {
    flush();
    for (int64_t t = 1; t < together_; ++t)
      for (int64_t i = 0; i < columns_; ++i) totals_[i] = Kind::join(totals_[i], totals_[t * columns_ + i]);
    return totals_;
  }

 private:
  void add_wide(const T* x, int64_t width) {
    for (int64_t i = 0; i < width; ++i) partials_[i] = Kind::add(partials_[i], x[i]);
    if (++added_ == kFlush) flush();
  }
  void flush() {
    for (int64_t i = 0; i < columns_ * together_; ++i) {
      totals_[i] = Kind::collect(totals_[i], partials_[i]);
      partials_[i] = Kind::kEmpty;
    }
    added_ = 0;
  }

  int64_t columns_, together_, added_ = 0;
  alignas(64) typename Kind::Total totals_[kColumns];
  alignas(64) typename Kind::Partial partials_[kColumns];
};

// How one reduction is cut into units that write `chunks` totals for each result. Depends on
// nothing but the shape.
struct Cut {
  ReductionWalk walk;
  int64_t pieces = 1;         // rows: terms that one run of `length` is cut into
  int64_t column_blocks = 1;  // columns: blocks of kColumns
  int64_t terms = 1;          // per result (or block of results), shared out over the chunks
  int64_t chunks = 1;
  double divisor = 1;
};

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

Cut make_cut(const Node& node, Reduction reduction, const std::vector<bool>& reduced) {
  Cut cut{.walk = walk_reduction(node.inputs[0].shape(), reduced)};
  if (reduction == Reduction::kMean) cut.divisor = cut.walk.reduced_elements;
  if (cut.walk.results == 0 || cut.walk.reduced_elements == 0) return cut;
  if (cut.walk.length_is_reduced) {
    cut.pieces = divide_up(cut.walk.length, kPiece);
    cut.terms = cut.walk.reduced.count() * cut.pieces;
    cut.chunks = std::clamp<int64_t>(divide_up(kUnits, cut.walk.results), 1, cut.terms);
  } else {
    cut.column_blocks = divide_up(cut.walk.length, kColumns);
    cut.terms = cut.walk.reduced.count();
    const int64_t blocks = cut.walk.kept.count() * cut.column_blocks;
    cut.chunks = std::clamp<int64_t>(divide_up(kUnits, blocks), 1, divide_up(cut.terms, kFlush));
  }
  return cut;
}

// The total of chunk `chunk` of result `result`, where the elements of a result lie in rows.
template <typename T, typename Kind>
typename Kind::Total reduce_rows(const Cut& cut, const T* x, int64_t result, int64_t chunk) {
  const T* first = x + cut.walk.kept.offset(result);
  typename Kind::Total total = Kind::kEmpty;
  for (int64_t t = cut.terms * chunk / cut.chunks; t < cut.terms * (chunk + 1) / cut.chunks; ++t) {
    const int64_t begin = t % cut.pieces * kPiece, end = std::min(begin + kPiece, cut.walk.length);
    total = Kind::join(
        total, reduce_row<T, Kind>(first + cut.walk.reduced.offset(t / cut.pieces) + begin, end - begin));
  }
  return total;
}

// Calls write(first result, number of results, totals) for chunk `chunk` of block `block` of results.
template <typename T, typename Kind, typename Write>
void reduce_columns(const Cut& cut, const T* x, int64_t block, int64_t chunk, Write write) {
  const int64_t outer = block / cut.column_blocks, first_column = block % cut.column_blocks * kColumns;
  const int64_t columns = std::min(kColumns, cut.walk.length - first_column);
  const T* first = x + cut.walk.kept.offset(outer) + first_column;
  Columns<T, Kind> accumulators(columns);
  const int64_t end = cut.terms * (chunk + 1) / cut.chunks;
  for (int64_t t = cut.terms * chunk / cut.chunks; t < end;) {
    // Rows up to the end of the innermost reduced axis follow one another at a distance of `length`.
    int64_t rows = 1;
    if (!cut.walk.reduced.empty()) {
      const int64_t extent = cut.walk.reduced.inner_extent();
      rows = std::min(end - t, extent - t % extent);
    }
    accumulators.add(first + cut.walk.reduced.offset(t), rows, cut.walk.length);
    t += rows;
  }
  write(outer * cut.walk.length + first_column, columns, accumulators.finish());
}

template <typename T, typename Kind>
void run_reduction(const Cut& cut, const KernelArguments& arguments) {
  using Total = typename Kind::Total;
  const T* x = arguments.input<T>(0);
  T* y = arguments.output<T>(0);
  const ReductionWalk& walk = cut.walk;
  if (walk.results == 0) return;
  if (walk.reduced_elements == 0) {
    std::fill_n(y, walk.results, Kind::finish(Kind::kEmpty, cut.divisor));
    return;
  }
  Total* chunk_totals = reinterpret_cast<Total*>(arguments.scratch);  // [chunk, result]
  auto write = [&](int64_t chunk, int64_t first, int64_t count, const Total* totals) {
    if (cut.chunks > 1) {
      std::copy_n(totals, count, chunk_totals + chunk * walk.results + first);
    } else {
      for (int64_t i = 0; i < count; ++i) y[first + i] = Kind::finish(totals[i], cut.divisor);
    }
  };
  const int64_t blocks = walk.length_is_reduced ? walk.results : walk.kept.count() * cut.column_blocks;
  const int64_t units = blocks * cut.chunks;
  const int64_t unit_elements = std::max<int64_t>(1, walk.results * walk.reduced_elements / units);
  arguments.team.parallel_for(units, divide_up(kGrain, unit_elements), [&](int64_t begin, int64_t end) {
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t block = unit / cut.chunks, chunk = unit % cut.chunks;
      if (walk.length_is_reduced) {
        const Total total = reduce_rows<T, Kind>(cut, x, block, chunk);
        write(chunk, block, 1, &total);
      } else {
        reduce_columns<T, Kind>(cut, x, block, chunk, [&](int64_t first, int64_t count, const Total* totals) {
          write(chunk, first, count, totals);
        });
      }
    }
  });
  if (cut.chunks == 1) return;
  for (int64_t i = 0; i < walk.results; ++i) {
    Total total = chunk_totals[i];
    for (int64_t c = 1; c < cut.chunks; ++c) total = Kind::join(total, chunk_totals[c * walk.results + i]);
    y[i] = Kind::finish(total, cut.divisor);
  }
}

template <typename T>
void (*choose(Reduction reduction))(const Cut&, const KernelArguments&) {
  switch (reduction) {
    case Reduction::kMax:
      return run_reduction<T, Extreme<T, true>>;
    case Reduction::kMin:
      return run_reduction<T, Extreme<T, false>>;
    default:
      return run_reduction<T, Sum<T>>;
  }
}

}  // namespace

Kernel reduction_kernel(const Node& node, Reduction reduction, const std::vector<bool>& reduced) {
  const Cut cut = make_cut(node, reduction, reduced);
  void (*run)(const Cut&, const KernelArguments&) = nullptr;
  switch (node.outputs[0].dtype) {
    case DType::kFloat32:
      run = choose<float>(reduction);
      break;
    case DType::kInt32:
      run = choose<int32_t>(reduction);
      break;
    case DType::kInt64:
      run = choose<int64_t>(reduction);
      break;
    default:
      MOX_ASSERT(false, "reductions take float32, int32 or int64");
  }
  Kernel kernel = plain_kernel(
      node, [cut, run](const KernelArguments& arguments) { run(cut, arguments); },
      cut.walk.length_is_reduced ? "loop:rows" : "loop:columns");
  if (cut.chunks > 1) kernel.scratch_bytes = (cut.chunks * cut.walk.results) * sizeof(double);
  kernel.floating_point_operations = node.inputs[0].shape().elements();
  return kernel;
}

}  // namespace mox
