// What a run asks of dimension-reduced training (docs/boost.md). Each field is the option of the same name.
#pragma once

#include <cstdint>
#include <string>

namespace mox {

// The options boost.*
struct BoostOptions {
  std::string mode = "manual";  // manual: what `dim_reduce` says; enable_all; disable_all
  bool dim_reduce = false;
};

// The options dim_reduce.*
struct DimReduceOptions {
  int64_t from_epoch = 0;  // stage 2 begins after so many passes over the data; 0: with the run's first step
  int64_t n_components = 32;  // dimensions of the subspace
  double rho = 0.55, gamma = 0.9, alpha = 0.001, sigma = 0.4;
  int64_t max_search = 2;
  std::string on_failed_search = "skip";  // or shrink, stop
  std::string pca_mat_path =
      "";  // the basis; "": <log_dir>/pca_mat.npy. Computed and written if it is not there
  std::string weight_load_dir = "";     // the snapshots; "": those that this run writes
  double timeout = 1800;                // seconds that another rank's part of the basis is waited for
  std::string basis_dtype = "float32";  // or bfloat16, for half of the memory
};

}  // namespace mox
