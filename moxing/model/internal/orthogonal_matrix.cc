#include "moxing/model/internal/orthogonal_matrix.h"

#include <Eigen/Dense>
#include <algorithm>

#include "runtime/base/error.h"

namespace mox::internal {

void orthogonalize(std::span<float> matrix, int64_t rows, int64_t columns, double gain) {
  MOX_ASSERT(std::ssize(matrix) == rows * columns, "the matrix has rows * columns elements");
  Eigen::Map<Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>> values(matrix.data(),
                                                                                           rows, columns);
  const bool wide = rows < columns;
  Eigen::MatrixXd tall = values.cast<double>();
  if (wide) tall.transposeInPlace();
  const Eigen::HouseholderQR<Eigen::MatrixXd> decomposition(tall);
  Eigen::MatrixXd q = decomposition.householderQ() * Eigen::MatrixXd::Identity(tall.rows(), tall.cols());
  // Householder's choice of signs is not uniform; the signs of R's diagonal make it so.
  for (Eigen::Index column = 0; column < q.cols(); ++column)
    if (decomposition.matrixQR()(column, column) < 0) q.col(column) = -q.col(column);
  if (wide) q.transposeInPlace();
  values = (gain * q).cast<float>();
}

}  // namespace mox::internal
