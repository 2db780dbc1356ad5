// What the networks of the zoo share: the state of one being built, and the layers they are made of.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "models/zoo/zoo.h"

namespace mox::zoo {

// Options with every default filled in.
struct NetworkSettings {
  int64_t num_classes = 0;
  float weight_decay = 0;
  float batch_norm_momentum = 0;
  float batch_norm_epsilon = 0;
  float dropout = 0;
  bool recompute_shortcuts = false;
};

struct LayerOptions {
  int64_t stride = 1;
  int64_t groups = 1;
  std::optional<Padding> padding = {};  // default: (kernel - 1) / 2 on every side
  layers::Activation activation = relu;
};

class Network {
 public:
  static constexpr const char* kHead = "logits";  // the scope of the last layer

  Network(const NetworkSettings& settings, ModeKeys mode) : settings_(settings), mode_(mode) {}

  // Convolution with bias; variables "<name>/kernel", "<name>/bias".
  Tensor conv(const Tensor& x, int64_t filters, int64_t kernel, const std::string& name,
              const LayerOptions& options = {});
  // Convolution without bias, where it is followed by a normalisation; "<name>/kernel".
  Tensor conv_without_bias(const Tensor& x, int64_t filters, int64_t kernel, const std::string& name,
                           const LayerOptions& options = {});
  // Convolution, batch normalisation, activation; "<name>/kernel", "<name>/batch_norm/...".
  Tensor conv_batch_norm(const Tensor& x, int64_t filters, int64_t kernel, const std::string& name,
                         const LayerOptions& options = {});
  Tensor batch_norm(const Tensor& x, const std::string& name, const layers::Activation& activation = {});
  Tensor dense(const Tensor& x, int64_t units, const std::string& name,
               const layers::Activation& activation = {});
  Tensor dropout(const Tensor& x);
  // conv_batch_norm with a 1x1 kernel and no activation.
  Tensor projection_shortcut(const Tensor& x, int64_t filters, int64_t stride);

  // Records x as the end point of that name and returns it.
  Tensor end_point(std::string_view name, const Tensor& x);
  // The last layer: num_classes units on x [batch, features], and the predictions.
  NetworkOutput classify(const Tensor& x);
  // The mean over the image, dropout if asked for, and the last layer.
  NetworkOutput classify_global_mean(const Tensor& x, bool with_dropout = false);

 private:
  layers::Conv2dOptions conv_options(int64_t kernel, const std::string& name,
                                     const LayerOptions& options) const;
  Regularizer regularizer() const;

  NetworkSettings settings_;
  ModeKeys mode_;
  NamedTensors end_points_;
};

}  // namespace mox::zoo
