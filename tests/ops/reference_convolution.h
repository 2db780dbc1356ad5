// Convolution and pooling as plain loops in double precision, for the tests to compare with.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "ops/convolution/conv2d.h"
#include "runtime/tensor/array.h"

namespace mox::test {

// One spatial axis by the rules that padding.h states, computed here anew.
struct ReferenceAxis {
  int64_t before, output;
};
inline ReferenceAxis reference_axis(int64_t input, int64_t window, int64_t stride, int64_t dilation,
                                    const Padding& padding, int axis) {
  const int64_t extent = (window - 1) * dilation + 1;
  if (padding.name() == "same") {
    const int64_t output = (input + stride - 1) / stride;
    const int64_t missing = std::max<int64_t>(0, (output - 1) * stride + extent - input);
    return {missing / 2, output};
  }
  const int64_t before = padding.sizes()[axis ? 2 : 0], after = padding.sizes()[axis ? 3 : 1];
  return {before, (input + before + after - extent) / stride + 1};
}

struct ReferenceConvolution {
  Shape x, w, y;
  ConvolutionOptions options;
  ReferenceAxis rows, columns;

  ReferenceConvolution(const Shape& x_shape, const Shape& w_shape, const ConvolutionOptions& o)
      : x(x_shape),
        w(w_shape),
        options(o),
        rows(reference_axis(x[2], w[2], o.strides[0], o.dilations[0], o.padding, 0)),
        columns(reference_axis(x[3], w[3], o.strides[1], o.dilations[1], o.padding, 1)) {
    y = Shape{x[0], w[0], rows.output, columns.output};
  }

  // visit(index in x, index in w, index in y) for every product of the convolution.
  void for_each_product(const std::function<void(int64_t, int64_t, int64_t)>& visit) const {
    const int64_t group_outputs = w[0] / options.groups;
    for (int64_t n = 0; n < y[0]; ++n)
      for (int64_t o = 0; o < y[1]; ++o)
        for (int64_t i = 0; i < y[2]; ++i)
          for (int64_t j = 0; j < y[3]; ++j)
            for (int64_t c = 0; c < w[1]; ++c)
              for (int64_t p = 0; p < w[2]; ++p)
                for (int64_t q = 0; q < w[3]; ++q) {
                  const int64_t row = i * options.strides[0] + p * options.dilations[0] - rows.before;
                  const int64_t column = j * options.strides[1] + q * options.dilations[1] - columns.before;
                  if (row < 0 || row >= x[2] || column < 0 || column >= x[3]) continue;
                  const int64_t channel = o / group_outputs * w[1] + c;
                  visit(((n * x[1] + channel) * x[2] + row) * x[3] + column,
                        ((o * w[1] + c) * w[2] + p) * w[3] + q, ((n * y[1] + o) * y[2] + i) * y[3] + j);
                }
  }

  Array forward(const Array& x_values, const Array& w_values) const {
    return sum(&x_values, &w_values, nullptr, y);
  }
  Array input_gradient(const Array& w_values, const Array& dy) const {
    return sum(nullptr, &w_values, &dy, x);
  }
  Array filter_gradient(const Array& x_values, const Array& dy) const {
    return sum(&x_values, nullptr, &dy, w);
  }

 private:
  // The one that is null is the result.
  Array sum(const Array* a, const Array* b, const Array* c, const Shape& shape) const {
    std::vector<double> total(static_cast<size_t>(shape.elements()));
    auto value = [](const Array* array, int64_t i) {
      return array ? static_cast<double>(array->values<float>()[i]) : 1.0;
    };
    for_each_product([&](int64_t i, int64_t j, int64_t k) {
      total[!a ? i : !b ? j : k] += value(a, i) * value(b, j) * value(c, k);
    });
    Array result(DType::kFloat32, shape);
    std::copy(total.begin(), total.end(), result.values<float>().begin());
    return result;
  }
};

}  // namespace mox::test
