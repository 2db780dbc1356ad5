// Layers: an op with the variables that it needs, made under a scope of its own.
//
//   x = mox::layers::dense(x, 1024, {.name = "fc1", .activation = mox::relu});
//
// Images are [batch, channels, height, width]. A layer without a name is called after its kind, with a number
// if the name is taken ("dense", "dense_1"), in the order in which the model makes them; give names to what
// should keep them when the model changes. To share the variables of a layer, call it again under the same
// name in a scope that allows reuse (var_scope). All throw InvalidArgument as the ops and get_variable do,
// with the caller's file and line.
//
// dense, conv2d and conv2d_transpose take x as float32 or bfloat16 and give float32; others take what their
// ops take. Where `precision: bf16` lets a product take bfloat16, such an x goes in as it is, without
// a cast (docs/precision.md).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>

#include "moxing/model/initializer.h"
#include "moxing/model/mode_keys.h"
#include "moxing/model/variables.h"
#include "ops/convolution/geometry/padding.h"
#include "runtime/base/source_location.h"
#include "runtime/graph/tensor.h"

namespace mox::layers {

// Any of mox::relu, mox::sigmoid, mox::tanh, mox::softplus, or a function of one's own. Empty: none.
using Activation = std::function<Tensor(const Tensor& x, SourceLocation where)>;

struct DenseOptions {
  std::string name = {};
  Activation activation = {};
  bool use_bias = true;
  Initializer kernel_initializer = glorot_uniform();
  Initializer bias_initializer = zeros();
  Regularizer kernel_regularizer = {};
};
// activation(x * kernel + bias). x: [batch, in]; result: [batch, units]. Variables: kernel [in,
// units], bias [units].
Tensor dense(const Tensor& x, int64_t units, const DenseOptions& options = {},
             SourceLocation where = SourceLocation::current());

struct Conv2dOptions {
  std::string name = {};
  std::array<int64_t, 2> strides = {1, 1};
  std::array<int64_t, 2> dilations = {1, 1};
  int64_t groups = 1;
  Padding padding = Padding::kSame;
  Activation activation = {};
  bool use_bias = true;
  Initializer kernel_initializer = he_normal();
  Initializer bias_initializer = zeros();
  Regularizer kernel_regularizer = {};
};
// Convolution with `filters` output channels and a window of kernel[0] x kernel[1].
// Variables: kernel [filters, channels / groups, kernel[0], kernel[1]], bias [filters].
Tensor conv2d(const Tensor& x, int64_t filters, std::array<int64_t, 2> kernel,
              const Conv2dOptions& options = {}, SourceLocation where = SourceLocation::current());

struct Conv2dTransposeOptions {
  std::string name = {};
  std::array<int64_t, 2> strides = {1, 1};
  Padding padding = Padding::kSame;
  Activation activation = {};
  bool use_bias = true;
  Initializer kernel_initializer = he_normal();
  Initializer bias_initializer = zeros();
  Regularizer kernel_regularizer = {};
};
// Transposed convolution. Variables: kernel [channels, filters, kernel[0], kernel[1]], bias [filters].
Tensor conv2d_transpose(const Tensor& x, int64_t filters, std::array<int64_t, 2> kernel,
                        const Conv2dTransposeOptions& options = {},
                        SourceLocation where = SourceLocation::current());

struct BatchNormOptions {
  std::string name = {};
  float momentum = 0.99f;  // of the moving averages: moving = momentum * moving + (1 - momentum) * batch
  float epsilon = 1e-3f;
  Activation activation = {};
  Initializer scale_initializer = ones();
  Initializer offset_initializer = zeros();
};
// Batch normalisation over the channels (axis 1) of [batch, channels, ...]. In TRAIN it uses the batch's mean
// and variance (with the option sync_batch_norm those of all replicas' batches) and updates the moving
// averages after the step; in the other modes, and where its scale and offset are both not trained (option
// frozen_batch_norm), it uses the moving averages. In TRAIN it throws InvalidArgument if a channel has one
// value; a smaller last batch may, and leaves the moving variance as it is. The moving variance averages
// unbiased variances (divided by the number of values less one), as PyTorch and TensorFlow do. Shared by
// several uses in one model (Reuse), the averages take the batches of all of them, in the order of the calls.
// Before mox::init there are no options, and no replicas. Variables: scale, offset [channels]; moving_mean,
// moving_variance [channels], not trainable. Ioffe & Szegedy, "Batch Normalization" (ICML 2015).
Tensor batch_norm(const Tensor& x, ModeKeys mode, const BatchNormOptions& options = {},
                  SourceLocation where = SourceLocation::current());

// Sets a share `rate` of the elements to zero in TRAIN and scales the others by 1 / (1 - rate); x itself in
// other modes. rate in [0, 1). Srivastava et al., "Dropout" (JMLR 2014).
Tensor dropout(const Tensor& x, float rate, ModeKeys mode, SourceLocation where = SourceLocation::current());

struct EmbeddingOptions {
  std::string name = {};
  Initializer initializer = random_uniform_initializer(-0.05, 0.05);
};
// Rows of a table: ids int32 or int64 of any shape [...], each in [0, vocabulary); result [..., width].
// Variable: table [vocabulary, width].
Tensor embedding(const Tensor& ids, int64_t vocabulary, int64_t width, const EmbeddingOptions& options = {},
                 SourceLocation where = SourceLocation::current());

}  // namespace mox::layers
