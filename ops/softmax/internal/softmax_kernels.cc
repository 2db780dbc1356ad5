#include "ops/softmax/internal/softmax_kernels.h"

#include <algorithm>
#include <limits>

#include "ops/softmax/softmax_rows.h"
#include "ops/support/axis_view.h"
#include "ops/support/exponential.h"
#include "ops/support/row_math.h"
#include "ops/support/shape_rules.h"

namespace mox::internal {
namespace {

// Columns that are reduced side by side when the axis is not the innermost.
constexpr int64_t kColumns = 64;

void forward_rows(const float* x, float* y, int64_t rows, int64_t length, bool logarithm) {
  float maxima[kGroupRows], log_sums[kGroupRows];
  const int64_t group = rows_per_group(length);
  for (int64_t first = 0; first < rows; first += group) {
    const int64_t count = std::min(group, rows - first);
    const float* from = x + first * length;
    float* to = y + first * length;
    if (!logarithm) {
      softmax_rows(from, count, length, to);
      continue;
    }
    row_statistics(from, count, length, maxima, log_sums);
    for (int64_t row = 0; row < count; ++row)
      for (int64_t i = row * length; i < (row + 1) * length; ++i)
        to[i] = (from[i] - maxima[row]) - log_sums[row];
  }
}

void forward_columns(const float* x, float* y, int64_t columns, int64_t extent, int64_t stride,
                     bool logarithm) {
  alignas(64) float maxima[kColumns], sums[kColumns], buffer[kColumns];
  std::fill(maxima, maxima + columns, -std::numeric_limits<float>::infinity());
  std::fill(sums, sums + columns, 0.0f);
  for (int64_t j = 0; j < extent; ++j)
    for (int64_t c = 0; c < columns; ++c) maxima[c] = std::max(maxima[c], x[j * stride + c]);
  for (int64_t j = 0; j < extent; ++j) {
    for (int64_t c = 0; c < columns; ++c) buffer[c] = x[j * stride + c] - maxima[c];
    exp_in_place(buffer, columns);
    for (int64_t c = 0; c < columns; ++c) sums[c] += buffer[c];
    if (!logarithm) std::copy(buffer, buffer + columns, y + j * stride);
  }
  if (!logarithm) {
    for (int64_t c = 0; c < columns; ++c) sums[c] = 1 / sums[c];
    for (int64_t j = 0; j < extent; ++j)
      for (int64_t c = 0; c < columns; ++c) y[j * stride + c] *= sums[c];
    return;
  }
  log_in_place(sums, columns);
  for (int64_t j = 0; j < extent; ++j)
    for (int64_t c = 0; c < columns; ++c) y[j * stride + c] = (x[j * stride + c] - maxima[c]) - sums[c];
}

void gradient_rows(const float* y, const float* dy, float* dx, int64_t rows, int64_t length) {
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t begin = row * length, end = begin + length;
    const float sum = row_dot(y + begin, dy + begin, length);
    for (int64_t i = begin; i < end; ++i) dx[i] = y[i] * (dy[i] - sum);
  }
}

void log_gradient_rows(const float* y, const float* dy, float* dx, int64_t rows, int64_t length) {
  alignas(64) float buffer[kGroupElements];
  for (int64_t row = 0; row < rows; ++row) {
    const float sum = row_sum(dy + row * length, length);
    for (int64_t begin = row * length, end = begin + length; begin < end; begin += kGroupElements) {
      const int64_t count = std::min(kGroupElements, end - begin);
      std::copy(y + begin, y + begin + count, buffer);
      exp_in_place(buffer, count);
      for (int64_t i = 0; i < count; ++i) dx[begin + i] = dy[begin + i] - buffer[i] * sum;
    }
  }
}

void gradient_columns(const float* y, const float* dy, float* dx, int64_t columns, int64_t extent,
                      int64_t stride, bool logarithm) {
  alignas(64) float sums[kColumns], buffer[kColumns];
  std::fill(sums, sums + columns, 0.0f);
  for (int64_t j = 0; j < extent; ++j)
    for (int64_t at = j * stride, c = 0; c < columns; ++c)
      sums[c] += logarithm ? dy[at + c] : y[at + c] * dy[at + c];
  for (int64_t j = 0; j < extent; ++j) {
    const int64_t at = j * stride;
    if (!logarithm) {
      for (int64_t c = 0; c < columns; ++c) dx[at + c] = y[at + c] * (dy[at + c] - sums[c]);
      continue;
    }
    std::copy(y + at, y + at + columns, buffer);
    exp_in_place(buffer, columns);
    for (int64_t c = 0; c < columns; ++c) dx[at + c] = dy[at + c] - buffer[c] * sums[c];
  }
}

// work(offset of the first element, columns) for every group of columns that can be handled on its own.
void for_column_groups(const AxisView& view, const Team& team, FunctionRef<void(int64_t, int64_t)> work) {
  const int64_t groups = (view.inner + kColumns - 1) / kColumns;
  const int64_t elements = std::min(view.inner, kColumns) * view.extent;
  team.parallel_for(view.outer * groups, std::max<int64_t>(1, kSoftmaxElementsPerThread / elements),
                    [&](int64_t begin, int64_t end) {
                      for (int64_t i = begin; i < end; ++i) {
                        const int64_t first = i % groups * kColumns;
                        work(i / groups * view.extent * view.inner + first,
                             std::min(kColumns, view.inner - first));
                      }
                    });
}

bool is_empty(const AxisView& view) { return view.outer == 0 || view.extent == 0 || view.inner == 0; }

int64_t rows_per_thread(const AxisView& view) {
  return std::max<int64_t>(1, kSoftmaxElementsPerThread / view.extent);
}

void forward(const float* x, float* y, const AxisView& view, bool logarithm, const Team& team) {
  if (is_empty(view)) return;
  if (view.inner == 1) {
    team.parallel_for(view.outer, rows_per_thread(view), [&](int64_t begin, int64_t end) {
      forward_rows(x + begin * view.extent, y + begin * view.extent, end - begin, view.extent, logarithm);
    });
    return;
  }
  for_column_groups(view, team, [&](int64_t offset, int64_t columns) {
    forward_columns(x + offset, y + offset, columns, view.extent, view.inner, logarithm);
  });
}

void gradient(const float* y, const float* dy, float* dx, const AxisView& view, bool logarithm,
              const Team& team) {
  if (is_empty(view)) return;
  if (view.inner == 1) {
    team.parallel_for(view.outer, rows_per_thread(view), [&](int64_t begin, int64_t end) {
      const int64_t at = begin * view.extent;
      if (logarithm)
        log_gradient_rows(y + at, dy + at, dx + at, end - begin, view.extent);
      else
        gradient_rows(y + at, dy + at, dx + at, end - begin, view.extent);
    });
    return;
  }
  for_column_groups(view, team, [&](int64_t offset, int64_t columns) {
    gradient_columns(y + offset, dy + offset, dx + offset, columns, view.extent, view.inner, logarithm);
  });
}

AxisView view_of(const Node& node) {
  const Shape& shape = node.inputs[0].shape();
  return axis_view(shape, shape.normalized_axis(softmax_axis(node)));
}

}  // namespace

int64_t softmax_axis(const Node& node) { return node.attributes.get<int64_t>("axis"); }

std::vector<TensorType> infer_softmax(const OpCall& call) {
  require_float32(call, 0, "inputs");
  for (const Tensor& input : call.inputs) call.require(input.type() == call.type(0), "inputs of one type");
  checked_axis(call, call.attributes.get<int64_t>("axis"), call.shape(0).rank());
  return same_as_input(call);
}

Kernel compile_softmax(const KernelRequest& request, bool logarithm) {
  return plain_kernel(request.node, [view = view_of(request.node), logarithm](const KernelArguments& args) {
    forward(args.input<float>(0), args.output<float>(0), view, logarithm, args.team);
  });
}

Kernel compile_softmax_gradient(const KernelRequest& request, bool logarithm) {
  return plain_kernel(request.node, [view = view_of(request.node), logarithm](const KernelArguments& args) {
    gradient(args.input<float>(0), args.input<float>(1), args.output<float>(0), view, logarithm, args.team);
  });
}

}  // namespace mox::internal
