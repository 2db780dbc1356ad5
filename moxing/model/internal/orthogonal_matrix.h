// Random matrices that keep lengths.
#pragma once

#include <cstdint>
#include <span>

namespace mox::internal {

// Replaces a row-major rows x columns matrix of independent normal values by gain * Q, where Q has
// orthonormal columns if rows >= columns and orthonormal rows otherwise, uniformly distributed over all such
// matrices. (Mezzadri, "How to generate random matrices from the classical compact groups", Notices of the
// AMS 2007.)
void orthogonalize(std::span<float> matrix, int64_t rows, int64_t columns, double gain);

}  // namespace mox::internal
