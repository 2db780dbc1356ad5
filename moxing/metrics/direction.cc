#include "moxing/metrics/direction.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>

#include "runtime/base/error.h"

namespace mox::metrics {
namespace {

constexpr std::string_view kSmaller[] = {
    "loss",     "losses",     "error", "errors",  "err",        "mae",      "mse",   "rmse",
    "mape",     "nll",        "bce",   "entropy", "perplexity", "ppl",      "brier", "ece",
    "distance", "divergence", "kl",    "wer",     "cer",        "deviance", "regret"};
constexpr std::string_view kLarger[] = {
    "accuracy", "acc",   "precision", "recall", "sensitivity", "specificity", "f1",     "auc",
    "auroc",    "auprc", "ap",        "map",    "iou",         "dice",        "top1",   "top5",
    "r2",       "bleu",  "psnr",      "ssim",   "mcc",         "kappa",       "reward", "likelihood"};

bool holds(std::span<const std::string_view> words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

}  // namespace

std::string_view to_string(Direction direction) {
  return direction == Direction::kLargerIsBetter ? "max" : "min";
}

Direction direction_from_string(std::string_view text) {
  if (text == "max") return Direction::kLargerIsBetter;
  if (text == "min") return Direction::kSmallerIsBetter;
  throw InvalidArgument(
      fmt::format("the direction of a metric is max (larger is better) or min, got '{}'", text));
}

std::optional<Direction> direction_of_name(std::string_view name) {
  bool smaller = false, larger = false, negative = false;
  std::string word;
  const auto end_word = [&] {
    smaller |= holds(kSmaller, word);
    larger |= holds(kLarger, word);
    negative |= word == "negative" || word == "neg";
    word.clear();
  };
  for (const char letter : name) {
    // Of ASCII, whatever the locale takes for letters.
    if (letter >= 'A' && letter <= 'Z')
      word += static_cast<char>(letter - 'A' + 'a');
    else if ((letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9'))
      word += letter;
    else
      end_word();
  }
  end_word();
  if (smaller == larger) return std::nullopt;
  return larger != negative ? Direction::kLargerIsBetter : Direction::kSmallerIsBetter;
}

}  // namespace mox::metrics
