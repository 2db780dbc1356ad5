// pca_mat.npy: a basis as a NumPy array of float32, k x M, row-major; its columns are the trained weights in
// the order of weight_layout.h.
#pragma once

#include <string>

#include "moxing/boost/basis.h"

namespace mox::boost {

// Rank 0 writes the file, atomically and durably, and gets the others' slices a few mebibytes at a time. All
// ranks call it together. Throws IoError on rank 0.
void write_basis(const std::string& path, const Basis& basis, Communicator& ranks);

// Each rank reads its slice. Throws NotFound, IoError, DataError for what is no such array or is not finite,
// and FailedPrecondition if its shape is not `components` x `columns`.
Basis read_basis(const std::string& path, int64_t components, int64_t columns, Communicator& ranks,
                 const Workers& workers, DType dtype = DType::kFloat32);

}  // namespace mox::boost
