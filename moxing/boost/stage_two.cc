#include "moxing/boost/stage_two.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "moxing/boost/basis_file.h"
#include "moxing/boost/principal_components.h"
#include "moxing/json/number_lists.h"
#include "moxing/json/whole_number.h"
#include "runtime/base/conflict.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/log.h"
#include "runtime/base/new_file.h"

namespace mox::boost {

StageTwo::StageTwo(const DimReduceOptions& options, Place place, Communicator& ranks)
    : options_(options), place_(std::move(place)), ranks_(ranks) {
  search_options_ = {.rho = options.rho,
                     .gamma = options.gamma,
                     .alpha = options.alpha,
                     .sigma = options.sigma,
                     .max_search = options.max_search,
                     .on_failed_search = failed_search_from_string(options.on_failed_search)};
  require_options(search_options_);
  rho_ = options.rho;
  basis_dtype_ = options.basis_dtype == "bfloat16" ? DType::kBFloat16 : DType::kFloat32;
  basis_path_ = options.pca_mat_path;
  if (basis_path_.empty() && !place_.log_dir.empty()) basis_path_ = place_.log_dir + "/pca_mat.npy";
  if (basis_path_.empty())
    throw Conflict(
        "dimension-reduced training keeps its basis in a file: set log_dir or dim_reduce.pca_mat_path");
  snapshots_path_ = options.weight_load_dir;
  if (snapshots_path_.empty() && place_.snapshots && options.from_epoch > 0)
    snapshots_path_ =
        place_.snapshots->directory.empty() ? place_.log_dir + "/snapshots" : place_.snapshots->directory;
}

// One that lies where nobody has said that it is may be another run's: what can be computed is not
// taken from there.
bool StageTwo::may_read_basis() const {
  return kept_ || !options_.pca_mat_path.empty() || snapshots_path_.empty();
}

void StageTwo::prepare(WeightLayout layout, const Start& start) {
  layout_ = std::move(layout);
  kept_ = start.kept;
  run_ = start.run;
  start_path_ = start.path;
  first_step_ = start.global_step;
  if (kept_) {
    try {
      const NumberLists state(kept_->state, kept_->path);
      first_step_ = count_in(state.value("first_step"));
      explained_ratio_ = state.list("explained_ratio");
      if (std::ssize(explained_ratio_) > kMostComponents)
        throw DataError(
            fmt::format("{} components; a basis has {} at most", explained_ratio_.size(), kMostComponents));
      kept_method_ = state.value("method").get<std::string>();
      if (state.has("rho") && state.value("rho") != options_.rho) rho_.reset();
    } catch (const std::exception& error) {
      throw DataError(fmt::format("the checkpoint '{}' holds no state of dimension-reduced training ({})",
                                  kept_->path, error.what()));
    }
    return;
  }
  if (options_.from_epoch > 0) {
    if (start.steps_per_epoch <= 0)
      throw Conflict(
          "dim_reduce.from_epoch is set, but the size of an epoch of input_fn's data is not known");
    first_step_ = std::max(start.global_step, start.last_step_of_stage_one);
  } else if (!start.has_weights) {
    throw Conflict(
        "stage 2 of dimension-reduced training begins with trained weights: give the last checkpoint of "
        "stage 1 as checkpoint_path; or let one run do both, with dim_reduce.from_epoch");
  }
  if (may_read_basis() && is_there(basis_path_)) return;
  if (snapshots_path_.empty())
    throw Conflict(
        fmt::format("there is no basis '{}', and no snapshots that it could be computed from: set "
                    "dim_reduce.weight_load_dir to those of stage 1; or, for one run with both stages, "
                    "snapshots.every_n_epochs and dim_reduce.from_epoch",
                    basis_path_));
  const int64_t needed = options_.n_components + 1;
  if (options_.weight_load_dir.empty()) {
    // Better here than after stage 1, if that is known.
    const int64_t expected =
        start.steps_are_alike ? count_snapshots(*place_.snapshots, first_step_, start.steps_per_epoch) : -1;
    if (expected >= 0 && expected < needed)
      throw Conflict(fmt::format(
          "stage 1 will have written {} snapshots when it ends after step {}, and {} components need at "
          "least {}: write them more often (snapshots.every_n_steps), keep more, or lower "
          "dim_reduce.n_components",
          expected, first_step_, options_.n_components, needed));
  } else if (const int64_t found = list_snapshots(snapshots_path_).size(); found < needed) {
    throw Conflict(fmt::format("'{}' holds {} snapshots, and {} components need at least {}", snapshots_path_,
                               found, options_.n_components, needed));
  }
}

Basis StageTwo::find_basis(const Workers& workers) {
  ranks_.barrier();  // what rank 0 has written last is there for all
  int64_t is_there = may_read_basis() && ranks_.rank() == 0 && ::access(basis_path_.c_str(), F_OK) == 0;
  ranks_.broadcast(std::as_writable_bytes(std::span(&is_there, 1)));
  if (is_there) {
    if (ranks_.rank() == 0)
      log_info(fmt::format("stage 2 in the subspace of '{}'; no snapshots are read", basis_path_));
    return read_basis(basis_path_, options_.n_components, layout_.columns(), ranks_, workers, basis_dtype_);
  }
  if (kept_)
    throw NotFound(
        fmt::format("the checkpoint '{}' went on in the subspace of a basis that is not at '{}' now: set "
                    "dim_reduce.pca_mat_path to where it is",
                    kept_->path, basis_path_));
  // Unfinished ones of this run, where nobody but it writes, can be large.
  if (ranks_.rank() == 0 && options_.pca_mat_path.empty()) remove_unfinished(basis_path_);
  const SnapshotSet snapshots(snapshots_path_, layout_, ranks_, workers);
  if (ranks_.rank() == 0 && !options_.weight_load_dir.empty() && !run_.empty() && !snapshots.run().empty() &&
      snapshots.run() != run_)
    log_warning(fmt::format(
        "the snapshots in '{}' are not those of the run that has trained '{}': the directions in which one run "
        "has moved need not be those that another one lacks (dim_reduce.weight_load_dir, checkpoint_path)",
        snapshots_path_, start_path_));
  PrincipalComponents found = principal_components(snapshots, options_.n_components, ranks_, workers);
  write_basis(basis_path_, found.basis, ranks_);
  explained_ratio_ = found.explained_ratio;
  double explained = 0;
  for (const double ratio : explained_ratio_) explained += ratio;
  if (ranks_.rank() == 0)
    log_info(
        fmt::format("{} components of {} snapshots in '{}' explain {:.2f} % of their variance; written to "
                    "'{}'",
                    options_.n_components, found.vectors, snapshots_path_, 100 * explained, basis_path_));
  if (basis_dtype_ == DType::kFloat32) return std::move(found.basis);
  return read_basis(basis_path_, options_.n_components, layout_.columns(), ranks_, workers, basis_dtype_);
}

void StageTwo::begin(Workers workers) {
  Basis basis = find_basis(workers);
  method_.emplace(std::move(basis), search_options_, ranks_, std::move(workers));
  if (kept_) method_->restore(kept_method_, kept_->residual, kept_->path);
  kept_.reset();
}

void StageTwo::step(std::span<const std::string> variables, std::span<const std::span<float>> gradients,
                    double gradient_scale, double loss, std::span<const std::span<float>> values,
                    FunctionRef<double()> loss_now) {
  std::vector<std::span<float>> gradient, weights;
  for (const WeightLayout::Variable& variable : layout_.variables()) {
    const size_t at = std::ranges::find(variables, variable.name) - variables.begin();
    MOX_ASSERT(at < variables.size(), "a gradient for each variable");
    gradient.push_back(gradients[at]);
    weights.push_back(values[at]);
  }
  const DimReduce::Outcome outcome = method_->step(FlatArrays(std::move(gradient)), gradient_scale, loss,
                                                   FlatArrays(std::move(weights)), loss_now);
  wants_to_stop_ = outcome.stop;
}

std::string StageTwo::save_state() const {
  if (!has_begun()) return "";
  return nlohmann::json({{"first_step", first_step_},
                         {"rho", rho_ ? nlohmann::json(*rho_) : nlohmann::json()},
                         {"explained_ratio", explained_ratio_},
                         {"method", method_->save_state()}})
      .dump();
}

}  // namespace mox::boost
