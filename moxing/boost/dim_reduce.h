// One step of dimension-reduced training (Li, Tan, Huang, Tao, Liu, Huang, "Low Dimensional Trajectory
// Hypothesis is True: DNNs Can Be Trained in Tiny Subspaces", arXiv 2103.11154): a quasi-Newton step with a
// line search in the subspace of a basis P, and a slow momentum in all that lies outside of it.
//
// With the mean gradient g, the coordinates P g, and the direction d that the search gives for them:
//   for m = 0, 1, ... max_search - 1: the loss at w + rho^m P'd is tried on the same batch; the first that is
//   below
//     loss + sigma rho^m (P g)'d is accepted;
//   r <- gamma r + (g - P'P g),    w <- w + rho^m P'd - alpha r.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "moxing/boost/basis.h"
#include "moxing/boost/subspace_search.h"
#include "moxing/boost/weight_layout.h"
#include "runtime/base/function_ref.h"
#include "runtime/comm/communicator.h"
#include "runtime/tensor/array.h"

namespace mox::boost {

enum class FailedSearch {
  kSkip,    // no step in the subspace; B and the last gradient are put back
  kShrink,  // the shortest step that was tried is taken all the same
  kStop,    // the run ends
};
// "skip", "shrink" or "stop"; throws InvalidArgument for another text.
FailedSearch failed_search_from_string(std::string_view text);

struct SearchOptions {
  double rho = 0.55;     // each trial is this much shorter than the one before
  double gamma = 0.9;    // of the momentum outside of the subspace
  double alpha = 0.001;  // its step
  double sigma = 0.4;    // the part of the promised decrease that a trial must bring
  int64_t max_search = 2;
  FailedSearch on_failed_search = FailedSearch::kSkip;
};

// Throws InvalidArgument for options outside of: 0 < rho < 1, gamma in [0, 1), alpha >= 0, sigma in (0, 1),
// max_search >= 1.
void require_options(const SearchOptions& options);

class DimReduce {
 public:
  // Counted since the first step, earlier starts included.
  struct Counts {
    int64_t steps = 0, failed = 0, trials = 0;
    std::vector<int64_t> accepted;  // by m
    bool operator==(const Counts&) const = default;
  };
  struct Outcome {
    double length = 0;  // rho^m; 0: no step in the subspace
    int64_t trials = 0;
    bool failed = false;  // no trial was accepted
    bool stop = false;    // and with kStop the run ends: no weight has changed
  };

  // Throws what require_options throws.
  DimReduce(Basis basis, const SearchOptions& options, Communicator& ranks, Workers workers);

  // One step. All ranks call it together, with equal arguments.
  // `gradient`: of the loss; it is multiplied by `gradient_scale`. `loss`: with the weights as they are.
  // `weights` are written. `loss_of_trial` returns the mean loss of the same batch over all replicas of all
  // ranks with what is in `weights` then. Throws NumericError if the gradient's coordinates are not finite;
  // the weights are then as they were.
  Outcome step(const FlatArrays& gradient, double gradient_scale, double loss, const FlatArrays& weights,
               FunctionRef<double()> loss_of_trial);

  const Basis& basis() const { return basis_; }
  const SubspaceSearch& search() const { return search_; }
  const Counts& counts() const { return counts_; }

  // The momentum outside of the subspace, of all columns. Every rank has all of it: rank 0 saves it alone.
  Array residual() const;
  // What a checkpoint holds beside: JSON text of the search, the counts and the basis's identity.
  std::string save_state() const;
  // Throws DataError for a text that save_state cannot have written, FailedPrecondition if it was written
  // with another basis; `path` is the checkpoint's, for messages.
  void restore(const std::string& state, const Array& residual, const std::string& path);

 private:
  std::vector<double> coordinates(const FlatArrays& gradient, float scale) const;
  void each_tile(IndexRange columns, FunctionRef<void(int64_t first, int64_t count)> body) const;
  void share(std::vector<float>& columns) const;
  IndexRange all_columns() const { return {0, basis_.chunks().columns()}; }
  void set_out(const FlatArrays& gradient, float scale, std::span<const double> direction,
               std::span<const double> coordinates, const FlatArrays& weights);
  Outcome try_lengths(double loss, const FlatArrays& weights, FunctionRef<double()> loss_of_trial);
  void go_outside(const FlatArrays& gradient, float scale, std::span<const float> direction,
                  std::span<const float> coordinates, IndexRange tile);
  void begin_trials(const FlatArrays& weights, IndexRange tile);
  void write_trial(double length, const FlatArrays& weights);
  void leave_trials(bool counts, const FlatArrays& weights);

  Basis basis_;
  SearchOptions options_;
  Communicator& ranks_;
  Workers workers_;
  std::string identity_;
  SubspaceSearch search_;
  Counts counts_;
  // Of all columns, in whole tiles: r, w before the step, and P'd. A step reads and writes each as seldom as
  // can be: beside P, of so many rows, they are what it costs.
  std::vector<float> residual_, weights_before_, way_;
  std::vector<float> residual_before_;  // with kStop
};

}  // namespace mox::boost
