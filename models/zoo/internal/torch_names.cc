#include "models/zoo/internal/torch_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <functional>

#include "runtime/base/error.h"

namespace mox::internal {
namespace {

// Collects the names of one network, layer by layer: torchvision's first, ours second.
class NameTable {
 public:
  explicit NameTable(std::string_view model) : model_(model) {}

  void kernel(const std::string& torch, const std::string& ours) { add(torch + ".weight", ours + "/kernel"); }
  void bias(const std::string& torch, const std::string& ours) { add(torch + ".bias", ours + "/bias"); }
  void batch_norm(const std::string& torch, const std::string& ours) {
    add(torch + ".weight", ours + "/batch_norm/scale");
    add(torch + ".bias", ours + "/batch_norm/offset");
    add(torch + ".running_mean", ours + "/batch_norm/moving_mean");
    add(torch + ".running_var", ours + "/batch_norm/moving_variance");
  }
  void conv_batch_norm(const std::string& torch_conv, const std::string& torch_norm,
                       const std::string& ours) {
    kernel(torch_conv, ours);
    batch_norm(torch_norm, ours);
  }
  void dense(const std::string& torch, const std::string& ours) {
    add(torch + ".weight", ours + "/kernel", true);
    bias(torch, ours);
  }

  std::map<std::string, TorchName> names;

 private:
  void add(const std::string& torch, const std::string& ours, bool is_dense_kernel = false) {
    names[torch] = {fmt::format("{}/{}", model_, ours), is_dense_kernel};
  }
  std::string_view model_;
};

void resnet(NameTable& table, const std::array<int, 4>& units, int convolutions) {
  table.conv_batch_norm("conv1", "bn1", "conv1");
  for (size_t block = 0; block < units.size(); ++block)
    for (int unit = 0; unit < units[block]; ++unit) {
      const std::string torch = fmt::format("layer{}.{}", block + 1, unit);
      const std::string ours = fmt::format("block{}/unit_{}", block + 1, unit + 1);
      for (int i = 1; i <= convolutions; ++i)
        table.conv_batch_norm(fmt::format("{}.conv{}", torch, i), fmt::format("{}.bn{}", torch, i),
                              fmt::format("{}/conv{}", ours, i));
      // Where the number of channels or the size changes; the basic units of the first block change neither.
      if (unit == 0 && (block > 0 || convolutions == 3))
        table.conv_batch_norm(torch + ".downsample.0", torch + ".downsample.1", ours + "/shortcut");
    }
  table.dense("fc", "logits");
}

void vgg(NameTable& table, const std::array<int, 5>& convolutions, bool batch_norm) {
  int index = 0;  // in nn.Sequential: convolution, [normalisation,] ReLU, ..., pooling
  for (size_t stage = 0; stage < convolutions.size(); ++stage) {
    for (int i = 1; i <= convolutions[stage]; ++i) {
      const std::string ours = fmt::format("conv{}/conv{}_{}", stage + 1, stage + 1, i);
      table.kernel(fmt::format("features.{}", index), ours);
      table.bias(fmt::format("features.{}", index), ours);
      if (batch_norm) table.batch_norm(fmt::format("features.{}", index + 1), ours);
      index += batch_norm ? 3 : 2;
    }
    ++index;
  }
  table.dense("classifier.0", "fc6");
  table.dense("classifier.3", "fc7");
  table.dense("classifier.6", "logits");
}

void mobilenet_v2(NameTable& table) {
  constexpr int kBlocks = 17;
  table.conv_batch_norm("features.0.0", "features.0.1", "conv1");
  for (int block = 1; block <= kBlocks; ++block) {
    const std::string torch = fmt::format("features.{}.conv", block), ours = fmt::format("block{}", block);
    int index = 0;
    if (block > 1) {  // the first has no expansion
      table.conv_batch_norm(fmt::format("{}.0.0", torch), fmt::format("{}.0.1", torch), ours + "/expand");
      ++index;
    }
    table.conv_batch_norm(fmt::format("{}.{}.0", torch, index), fmt::format("{}.{}.1", torch, index),
                          ours + "/depthwise");
    table.conv_batch_norm(fmt::format("{}.{}", torch, index + 1), fmt::format("{}.{}", torch, index + 2),
                          ours + "/project");
  }
  table.conv_batch_norm("features.18.0", "features.18.1", "conv2");
  table.dense("classifier.1", "logits");
}

struct Entry {
  std::string_view model;
  std::function<void(NameTable&)> fill;
};

const std::vector<Entry>& entries() {
  static const std::vector<Entry> list = {
      {"vgg_a",
       [](NameTable& table) {
         vgg(table, {1, 1, 2, 2, 2}, false);
       }},
      {"vgg_a_bn",
       [](NameTable& table) {
         vgg(table, {1, 1, 2, 2, 2}, true);
       }},
      {"vgg_16",
       [](NameTable& table) {
         vgg(table, {2, 2, 3, 3, 3}, false);
       }},
      {"vgg_16_bn",
       [](NameTable& table) {
         vgg(table, {2, 2, 3, 3, 3}, true);
       }},
      {"vgg_19",
       [](NameTable& table) {
         vgg(table, {2, 2, 4, 4, 4}, false);
       }},
      {"vgg_19_bn",
       [](NameTable& table) {
         vgg(table, {2, 2, 4, 4, 4}, true);
       }},
      {"resnet_v1_18",
       [](NameTable& table) {
         resnet(table, {2, 2, 2, 2}, 2);
       }},
      {"resnet_v1_34",
       [](NameTable& table) {
         resnet(table, {3, 4, 6, 3}, 2);
       }},
      {"resnet_v1_50",
       [](NameTable& table) {
         resnet(table, {3, 4, 6, 3}, 3);
       }},
      {"resnet_v1_101",
       [](NameTable& table) {
         resnet(table, {3, 4, 23, 3}, 3);
       }},
      {"resnet_v1_152",
       [](NameTable& table) {
         resnet(table, {3, 8, 36, 3}, 3);
       }},
      {"mobilenet_v2", mobilenet_v2},
      {"mobilenet_v2_140", mobilenet_v2},
      {"mobilenet_v2_035", mobilenet_v2},
  };
  return list;
}

}  // namespace

std::map<std::string, TorchName> torch_names(std::string_view model) {
  for (const Entry& entry : entries())
    if (entry.model == model) {
      NameTable table(model);
      entry.fill(table);
      return std::move(table.names);
    }
  throw InvalidArgument(fmt::format("no names of torchvision are known for '{}'; there are names for: {}",
                                    model, fmt::join(torch_models(), ", ")));
}

std::vector<std::string> torch_models() {
  std::vector<std::string> models;
  for (const Entry& entry : entries()) models.emplace_back(entry.model);
  return models;
}

}  // namespace mox::internal
