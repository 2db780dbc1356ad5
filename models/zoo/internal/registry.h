// The list of all networks.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string_view>

#include "models/zoo/internal/network.h"

namespace mox::zoo {

struct NetworkEntry {
  std::string_view name;
  std::string_view paper;
  int64_t image_size;
  int64_t channels;
  int64_t num_classes;
  std::optional<float> dropout;
  bool has_batch_norm;
  bool takes_any_image_size;
  bool has_projections;  // shortcuts that are convolutions with batch normalisation
  NetworkOutput (*build)(Network& network, const Tensor& images);
};

std::span<const NetworkEntry> network_entries();

// Throws InvalidArgument for an unknown name.
const NetworkEntry& network_entry(std::string_view name);

}  // namespace mox::zoo
