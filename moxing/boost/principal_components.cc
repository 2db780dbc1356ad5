#include "moxing/boost/principal_components.h"

#include <fmt/format.h>

#include <Eigen/Dense>
#include <cmath>
#include <cstring>
#include <exception>
#include <mutex>
#include <optional>

#include "runtime/base/error.h"
#include "runtime/comm/allgather_values.h"

namespace mox::boost {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
constexpr int64_t kBlockColumns = 4 * kTileColumns;

// An eigenvalue below this part of the largest is rounding, not a direction.
constexpr double kSmallestEigenvalue = 1e-13;

// Runs body(index) on the workers; throws what the body of the lowest index threw.
void run_all(const Workers& workers, int64_t count, FunctionRef<void(int64_t)> body) {
  std::vector<std::exception_ptr> errors(count);
  workers(count, [&](int64_t index) {
    try {
      body(index);
    } catch (...) {
      errors[index] = std::current_exception();
    }
  });
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

[[noreturn]] void throw_not_finite(const ColumnSource& source, int64_t first_column, int64_t columns) {
  std::vector<float> row(columns);
  for (int64_t vector = 0; vector < source.vectors(); ++vector) {
    source.read(vector, first_column, row);
    for (int64_t j = 0; j < columns; ++j)
      if (!std::isfinite(row[j]))
        throw NumericError(fmt::format(
            "a value that is not finite ({}) in {}: a basis cannot be computed from it; delete that "
            "snapshot and later ones of the run that diverged",
            row[j], source.describe(vector, first_column + j)));
  }
  throw NumericError(
      "values so large that their squares are not finite: a basis cannot be computed from them");
}

// Columns of all vectors, less their means.
class CentredBlock {
 public:
  explicit CentredBlock(const ColumnSource& source)
      : source_(source), rows_(source.vectors(), kBlockColumns), read_(kBlockColumns) {}

  // The block of the columns from `first` on; rows are the vectors.
  auto load(int64_t first, int64_t columns) {
    const std::span<float> values = std::span(read_).first(columns);
    for (int64_t vector = 0; vector < source_.vectors(); ++vector) {
      source_.read(vector, first, values);
      rows_.row(vector).head(columns) =
          Eigen::Map<const Eigen::RowVectorXf>(values.data(), columns).cast<double>();
    }
    auto block = rows_.leftCols(columns);
    block.rowwise() -= block.colwise().mean().eval();
    return block;
  }

 private:
  const ColumnSource& source_;
  Matrix rows_;
  std::vector<float> read_;
};

// A block for each worker that is at work.
class BlockPool {
 public:
  explicit BlockPool(const ColumnSource& source) : source_(source) {}
  std::unique_ptr<CentredBlock> take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return std::make_unique<CentredBlock>(source_);
    auto block = std::move(free_.back());
    free_.pop_back();
    return block;
  }
  void give_back(std::unique_ptr<CentredBlock> block) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(block));
  }

 private:
  const ColumnSource& source_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<CentredBlock>> free_;
};

// The sum over all chunks of all ranks, in the order of the chunks.
Matrix gram_matrix(const ColumnSource& source, const Basis& basis, Communicator& ranks,
                   const Workers& workers, BlockPool& blocks) {
  const int64_t n = source.vectors();
  const size_t entries = n * n;
  std::vector<double> own(basis.own_chunks().count * entries);
  run_all(workers, basis.own_chunks().count, [&](int64_t index) {
    const IndexRange chunk = basis.chunks().chunk(basis.own_chunks().first + index);
    Matrix sum = Matrix::Zero(n, n);
    auto block = blocks.take();
    for (int64_t done = 0; done < chunk.count; done += kBlockColumns) {
      const int64_t columns = std::min(kBlockColumns, chunk.count - done);
      sum.selfadjointView<Eigen::Lower>().rankUpdate(block->load(chunk.first + done, columns));
      if (!sum.diagonal().allFinite()) throw_not_finite(source, chunk.first + done, columns);
    }
    blocks.give_back(std::move(block));
    std::memcpy(own.data() + index * entries, sum.data(), entries * sizeof(double));
  });
  Matrix gram = Matrix::Zero(n, n);
  for (const std::vector<double>& theirs : allgather_values(ranks, own))
    for (size_t at = 0; at < theirs.size(); at += entries)
      gram += Eigen::Map<const Matrix>(theirs.data() + at, n, n);
  return gram;
}

}  // namespace

PrincipalComponents principal_components(const ColumnSource& source, int64_t components, Communicator& ranks,
                                         const Workers& workers, DType dtype) {
  const int64_t n = source.vectors();
  if (n < components)
    throw InvalidArgument(fmt::format(
        "{} snapshots are too few for {} components: at least {} are needed; write them more often "
        "(snapshots.every_n_epochs, snapshots.every_n_steps) or lower dim_reduce.n_components",
        n, components, components + 1));
  PrincipalComponents result{.basis = Basis(components, source.columns(), ranks.rank(), ranks.size(), dtype),
                             .explained_variance = {},
                             .explained_ratio = {},
                             .vectors = n};
  BlockPool blocks(source);
  const Matrix gram = gram_matrix(source, result.basis, ranks, workers, blocks);
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(gram);  // reads the lower half
  const Eigen::VectorXd eigenvalues = solver.eigenvalues().reverse().cwiseMax(0.0);
  const auto directions = (eigenvalues.array() > kSmallestEigenvalue * eigenvalues[0]).count();
  if (directions < components || !(eigenvalues[0] > 0))
    throw FailedPrecondition(fmt::format(
        "{} snapshots, less their mean, span only {} directions; {} components are wanted. N "
        "snapshots give at most N - 1, and those of a run that stands still fewer: write more, or "
        "lower dim_reduce.n_components",
        n, eigenvalues[0] > 0 ? directions : 0, components));
  const double total = eigenvalues.sum();
  Matrix coefficients(components, n);  // what rows of X become rows of the basis with
  for (int64_t i = 0; i < components; ++i) {
    Eigen::VectorXd direction = solver.eigenvectors().col(n - 1 - i);
    Eigen::Index largest = 0;
    direction.cwiseAbs().maxCoeff(&largest);
    if (direction[largest] < 0) direction = -direction;
    coefficients.row(i) = direction.transpose() / std::sqrt(eigenvalues[i]);
    result.explained_variance.push_back(eigenvalues[i] / (n - 1));
    result.explained_ratio.push_back(eigenvalues[i] / total);
  }
  Basis& basis = result.basis;
  run_all(workers, basis.own_chunks().count, [&](int64_t index) {
    const IndexRange chunk = basis.chunks().chunk(basis.own_chunks().first + index);
    auto block = blocks.take();
    Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> rows;
    for (int64_t done = 0; done < chunk.count; done += kBlockColumns) {
      const int64_t columns = std::min(kBlockColumns, chunk.count - done);
      const Matrix products = coefficients * block->load(chunk.first + done, columns);
      rows = products.cast<float>();
      for (int64_t i = 0; i < components; ++i)
        basis.write(i, chunk.first + done, {rows.row(i).data(), static_cast<size_t>(columns)});
    }
    blocks.give_back(std::move(block));
  });
  return result;
}

}  // namespace mox::boost
