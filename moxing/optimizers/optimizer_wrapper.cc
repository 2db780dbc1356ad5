#include "moxing/optimizers/optimizer_wrapper.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/nearest_name.h"

namespace mox {
namespace {

class ClipByValue final : public OptimizerWrapper {
 public:
  ClipByValue(std::unique_ptr<Optimizer> wrapped, double limit)
      : OptimizerWrapper(std::move(wrapped)), limit_(limit) {
    if (global_norm_limit())
      throw InvalidArgument(
          "clip_by_value cannot be outside of clip_by_global_norm, since the norm is taken of the gradients "
          "as the backward pass left them: write clip_by_global_norm(clip_by_value(optimizer)) instead");
  }
  bool is_elementwise() const override { return wrapped().is_elementwise(); }
  std::string description() const override {
    return fmt::format("clip by value {}, {}", limit_, wrapped().description());
  }
  void apply(const ParameterUpdate& update, const Team& team) const override {
    ParameterUpdate clipped = update;
    clipped.clip_value = std::min(update.clip_value, limit_);
    wrapped().apply(clipped, team);
  }

 private:
  double limit_;
};

class ClipByGlobalNorm final : public OptimizerWrapper {
 public:
  ClipByGlobalNorm(std::unique_ptr<Optimizer> wrapped, double limit)
      : OptimizerWrapper(std::move(wrapped)), limit_(limit) {}
  std::string description() const override {
    return fmt::format("clip by global norm {}, {}", limit_, wrapped().description());
  }
  std::optional<double> global_norm_limit() const override {
    return std::min(limit_, wrapped().global_norm_limit().value_or(limit_));
  }

 private:
  double limit_;
};

template <typename Wrapper>
std::unique_ptr<Optimizer> wrap(std::unique_ptr<Optimizer> optimizer, double limit) {
  return std::make_unique<Wrapper>(std::move(optimizer), limit);
}

struct Wrapper {
  std::string_view name;
  std::unique_ptr<Optimizer> (*wrap)(std::unique_ptr<Optimizer>, double limit);
};
constexpr Wrapper kWrappers[] = {
    {"clip_by_global_norm", wrap<ClipByGlobalNorm>},
    {"clip_by_value", wrap<ClipByValue>},
};

}  // namespace

OptimizerWrapper::OptimizerWrapper(std::unique_ptr<Optimizer> wrapped) : wrapped_(std::move(wrapped)) {
  if (!wrapped_)
    throw InvalidArgument("an optimizer wrapper needs an optimizer, but the optimizer_fn returned null");
}

OptimizerWrapperFn get_optimizer_wrapper_fn(std::string_view name, OptimizerWrapperOptions options) {
  for (const Wrapper& entry : kWrappers) {
    if (entry.name != name) continue;
    if (!options.limit)
      throw InvalidArgument(fmt::format("optimizer wrapper \"{}\" needs the option limit", name));
    if (!(*options.limit > 0 && std::isfinite(*options.limit)))
      throw InvalidArgument(fmt::format("optimizer wrapper \"{}\": limit must be a finite number > 0, got {}",
                                        name, *options.limit));
    return [wrap = entry.wrap, limit = *options.limit](OptimizerFn inner) -> OptimizerFn {
      if (!inner) throw InvalidArgument("an optimizer wrapper needs an optimizer_fn, got an empty function");
      return [wrap, limit, inner = std::move(inner)] { return wrap(inner(), limit); };
    };
  }
  throw InvalidArgument(internal::unknown_name_message("optimizer wrapper", name, optimizer_wrapper_names()));
}

std::vector<std::string> optimizer_wrapper_names() {
  std::vector<std::string> names;
  for (const Wrapper& entry : kWrappers) names.emplace_back(entry.name);
  return names;
}

}  // namespace mox
