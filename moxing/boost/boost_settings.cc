#include "moxing/boost/boost_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "moxing/config/flags.h"
#include "moxing/config/given_by_user.h"
#include "moxing/config/options.h"
#include "runtime/base/error.h"

namespace mox::internal {
namespace {

// Resolves fields of a struct of options, each by its own name.
template <typename Options>
class FieldResolver {
 public:
  explicit FieldResolver(const std::optional<Options>& from_code) : from_code_(from_code) {}
  template <typename T>
  T operator()(const char* name, T Options::*field) const {
    return resolve<T>(name, from_code_ ? std::optional<T>(*from_code_.*field) : std::nullopt);
  }

 private:
  const std::optional<Options>& from_code_;
};

constexpr std::array kSnapshotIntervals = {"snapshots.every_n_epochs", "snapshots.every_n_steps",
                                           "snapshots.every_n_secs"};

constexpr std::array kSnapshotDetails = {"snapshots.from_epoch", "snapshots.keep", "snapshots.directory"};

// An interval that is given as 0 switches the section off; without any, its other options say
// what nothing does.
void refuse_options_without_interval(const SnapshotHookOptions& options) {
  const SnapshotHookOptions defaults;
  if (options.from_epoch == defaults.from_epoch && options.keep == defaults.keep && options.directory.empty())
    return;
  // What a program says by itself waits for the interval of a configuration.
  if (std::ranges::none_of(kSnapshotDetails, [](const char* name) { return is_given_by_user(name); })) return;
  if (std::ranges::any_of(kSnapshotIntervals, [](const char* name) { return is_given(name); })) return;
  throw ConfigError(
      "snapshots.from_epoch, snapshots.keep or snapshots.directory is set, but no interval, so no snapshot "
      "would be written: set snapshots.every_n_epochs, snapshots.every_n_steps or snapshots.every_n_secs");
}

constexpr std::array kDimReduce = {"dim_reduce.from_epoch",   "dim_reduce.n_components",
                                   "dim_reduce.rho",          "dim_reduce.gamma",
                                   "dim_reduce.alpha",        "dim_reduce.sigma",
                                   "dim_reduce.max_search",   "dim_reduce.on_failed_search",
                                   "dim_reduce.pca_mat_path", "dim_reduce.weight_load_dir",
                                   "dim_reduce.timeout",      "dim_reduce.basis_dtype"};

// Who describes a stage 2 and does not say whether there is one would get an ordinary training instead of it.
void refuse_options_without_stage_two(const std::string& mode) {
  if (mode != "manual" || is_given("boost.dim_reduce") || flag("run_mode") != "train") return;
  const auto given =
      std::ranges::find_if(kDimReduce, [](const char* name) { return is_given_by_user(name); });
  if (given == kDimReduce.end()) return;
  throw ConfigError(fmt::format(
      "{} ({}) is set, but nothing says whether there is a stage 2 of dimension-reduced training, and without "
      "it this option does nothing: set boost.dim_reduce to true, or to false where it is to wait",
      *given, option_origin(*given)));
}

}  // namespace

std::optional<SnapshotHookOptions> resolve_snapshots(const std::optional<SnapshotHookOptions>& from_code) {
  using Options = SnapshotHookOptions;
  const FieldResolver<Options> value(from_code);
  const Options options{.every_n_epochs = value("snapshots.every_n_epochs", &Options::every_n_epochs),
                        .every_n_steps = value("snapshots.every_n_steps", &Options::every_n_steps),
                        .every_n_secs = value("snapshots.every_n_secs", &Options::every_n_secs),
                        .from_epoch = value("snapshots.from_epoch", &Options::from_epoch),
                        .keep = value("snapshots.keep", &Options::keep),
                        .directory = value("snapshots.directory", &Options::directory)};
  if (options.every_n_epochs != 0 || options.every_n_steps != 0 || options.every_n_secs != 0) return options;
  refuse_options_without_interval(options);
  return std::nullopt;
}

std::optional<DimReduceOptions> resolve_dim_reduce(const std::optional<std::string>& level_from_code,
                                                   const std::optional<BoostOptions>& boost_from_code,
                                                   const std::optional<DimReduceOptions>& from_code) {
  using Options = DimReduceOptions;
  const FieldResolver<BoostOptions> boost(boost_from_code);
  const std::string level = resolve<std::string>("boost_level", level_from_code),
                    mode = boost("boost.mode", &BoostOptions::mode);
  const bool wanted = boost("boost.dim_reduce", &BoostOptions::dim_reduce);
  const FieldResolver<Options> value(from_code);
  Options options{.from_epoch = value("dim_reduce.from_epoch", &Options::from_epoch),
                  .n_components = value("dim_reduce.n_components", &Options::n_components),
                  .rho = value("dim_reduce.rho", &Options::rho),
                  .gamma = value("dim_reduce.gamma", &Options::gamma),
                  .alpha = value("dim_reduce.alpha", &Options::alpha),
                  .sigma = value("dim_reduce.sigma", &Options::sigma),
                  .max_search = value("dim_reduce.max_search", &Options::max_search),
                  .on_failed_search = value("dim_reduce.on_failed_search", &Options::on_failed_search),
                  .pca_mat_path = value("dim_reduce.pca_mat_path", &Options::pca_mat_path),
                  .weight_load_dir = value("dim_reduce.weight_load_dir", &Options::weight_load_dir),
                  .timeout = value("dim_reduce.timeout", &Options::timeout),
                  .basis_dtype = value("dim_reduce.basis_dtype", &Options::basis_dtype)};
  if (level != "O0" && !wanted) refuse_options_without_stage_two(mode);
  if (level == "O0" || mode == "disable_all" || (mode == "manual" && !wanted)) return std::nullopt;
  return options;
}

}  // namespace mox::internal
