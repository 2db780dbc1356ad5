// Stage 2 of a run: where its basis comes from, when it begins, what it has done so far.
//
//   construct          with the options; before the first step of the run
//   prepare            once the model is known: the layout of its weights, the step at which stage 2 begins,
//                      and what cannot be
//   is_due, begin      at the border of a step: the basis is read, or computed from the snapshots and written
//   step               in place of the optimizer's update
//
// All ranks do all of it together.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "moxing/boost/boost_options.h"
#include "moxing/boost/dim_reduce.h"
#include "moxing/boost/snapshot_hook.h"
#include "moxing/boost/weight_layout.h"
#include "runtime/base/function_ref.h"

namespace mox::boost {

class StageTwo {
 public:
  struct Place {
    std::string log_dir;                           // "": the run keeps nothing
    std::optional<SnapshotHookOptions> snapshots;  // those that the run writes
  };
  // Throws what DimReduce and failed_search_from_string throw for options; FailedPrecondition if there is no
  // place for a basis, or no snapshots that it could come from.
  StageTwo(const DimReduceOptions& options, Place place, Communicator& ranks);

  // What a checkpoint of stage 2 holds; `path` is its name.
  struct Kept {
    std::string state;
    Array residual;
    std::string path;
  };
  struct Start {
    int64_t global_step = 0;             // from which the run goes on
    double steps_per_epoch = 0;          // 0: not known
    int64_t last_step_of_stage_one = 0;  // with which from_epoch passes end, if that is known
    bool steps_are_alike = true;         // those of earlier starts took as many samples each
    bool has_weights = false;            // that were trained: from a checkpoint
    std::optional<Kept> kept;
    // The run that wrote snapshots up to these weights, as snapshots name it, and the checkpoint that says
    // so; "" if none did.
    std::string run, path;
  };
  // Throws FailedPrecondition if stage 2 would begin with weights that are not trained, or would find too few
  // snapshots when it begins; DataError for a damaged state.
  void prepare(WeightLayout layout, const Start& start);

  int64_t first_step() const { return first_step_; }  // the global step with which stage 2 begins
  bool has_begun() const { return method_.has_value(); }
  bool is_due(int64_t global_step) const { return !has_begun() && global_step >= first_step_; }
  // Throws what principal_components, SnapshotSet, read_basis and DimReduce::restore throw.
  void begin(Workers workers);

  // `variables`: the layout's, in any order; their gradients and values in the same order.
  void step(std::span<const std::string> variables, std::span<const std::span<float>> gradients,
            double gradient_scale, double loss, std::span<const std::span<float>> values,
            FunctionRef<double()> loss_now);
  bool wants_to_stop() const { return wants_to_stop_; }  // on_failed_search: stop

  const DimReduce& method() const { return *method_; }
  // Of all steps so far; none if some had another one.
  std::optional<double> rho() const { return rho_; }
  // Of the basis's components, parts of the whole; empty if it was read from a file.
  const std::vector<double>& explained_ratio() const { return explained_ratio_; }
  const std::string& basis_path() const { return basis_path_; }

  // Of stage 2; "" before it begins.
  std::string save_state() const;

 private:
  bool may_read_basis() const;
  Basis find_basis(const Workers& workers);

  DimReduceOptions options_;
  SearchOptions search_options_;
  Place place_;
  Communicator& ranks_;
  std::string basis_path_, snapshots_path_;
  DType basis_dtype_ = DType::kFloat32;
  WeightLayout layout_;
  int64_t first_step_ = 0;
  std::string run_, start_path_;
  std::optional<Kept> kept_;
  std::string kept_method_;  // of kept_
  std::optional<DimReduce> method_;
  std::vector<double> explained_ratio_;
  std::optional<double> rho_;
  bool wants_to_stop_ = false;
};

}  // namespace mox::boost
