#include "ops/convolution/winograd/convolution_class.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace mox {
namespace {

constexpr int kFewestChannels = 16, kMostChannels = 512;
constexpr std::array<std::string_view, 3> kNames = {"y", "dx", "dw"};  // by ConvolutionResult

// Takes a number from the beginning of a text.
std::optional<int> take_number(std::string_view& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(end - text.data());
  return number;
}

std::string to_string(const ConvolutionClass& of) {
  return fmt::format("{0}x{0}/{1} {2} {3}", of.window, of.stride, of.channels,
                     kNames[static_cast<size_t>(of.result)]);
}

std::optional<ConvolutionClass> class_from_string(const std::string_view text) {
  std::string_view rest = text;
  ConvolutionClass found;
  for (int* number : {&found.window, &found.window, &found.stride, &found.channels}) {
    const auto taken = take_number(rest);
    if (!taken || rest.empty()) return std::nullopt;
    *number = *taken;
    rest.remove_prefix(1);
  }
  const auto* const name = std::ranges::find(kNames, rest);
  if (name == kNames.end()) return std::nullopt;
  found.result = static_cast<ConvolutionResult>(name - kNames.begin());
  if (to_string(found) != text) return std::nullopt;
  return found;
}

}  // namespace

ConvolutionClass class_of(const ConvolutionGeometry& geometry, ConvolutionResult result) {
  const double products = static_cast<double>(geometry.x.shape[1]) * static_cast<double>(geometry.y.shape[1]);
  const auto channels = static_cast<int>(std::exp2(std::round(std::log2(products) / 2)));
  return {.window = static_cast<int>(geometry.w.shape[2]),
          .stride = static_cast<int>(geometry.window[0].stride),
          .channels = std::clamp(channels, kFewestChannels, kMostChannels),
          .result = result};
}

std::string to_string(const ConvolutionClasses& classes) {
  if (classes.empty()) return "none";
  std::string text;
  for (const ConvolutionClass& of : classes) text += (text.empty() ? "" : ", ") + to_string(of);
  return text;
}

std::optional<ConvolutionClasses> convolution_classes_from_string(std::string_view text) {
  ConvolutionClasses classes;
  if (text == "none") return classes;
  for (;;) {
    const size_t end = text.find(", ");
    const auto found = class_from_string(text.substr(0, end));
    if (!found) return std::nullopt;
    classes.insert(*found);
    if (end == std::string_view::npos) return classes;
    text.remove_prefix(end + 2);
  }
}

}  // namespace mox
