#include "moxing/boost/basis_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <exception>
#include <filesystem>
#include <optional>
#include <vector>

#include "moxing/formats/npy.h"
#include "runtime/base/conflict.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/input_file.h"
#include "runtime/base/new_file.h"
#include "runtime/comm/allgather_values.h"

namespace mox::boost {
namespace {

constexpr int64_t kColumnsAtOnce = 64 * kTileColumns;

// Between these the length of a row lies that is taken for 1: a component that hardly varies in the snapshots
// is known badly, and its length with it.
constexpr double kShortest = 0.5, kLongest = 2;

void require_plain_float32(const data::NpyHeader& header, const std::string& path) {
  if (header.type.dtype == DType::kFloat32 && header.plain()) return;
  throw DataError(fmt::format(
      "'{}' holds values of the type {}{} in {} order, {}; a basis is an array of float32, little-endian and "
      "in C order (in Python: numpy.ascontiguousarray(array, '<f4'))",
      path, header.stored, header.big_endian ? ", big-endian," : "", header.fortran_order ? "Fortran" : "C",
      to_string(header.type.shape)));
}

// What has the right shape by chance is found so, and most of what is damaged. `own`: sums of squares, of
// each of the own chunks those of all rows. All ranks call it together.
void require_unit_rows(const std::vector<double>& own, int64_t components, Communicator& ranks,
                       const std::string& path) {
  std::vector<double> squares(components, 0.0);
  for (const std::vector<double>& theirs : allgather_values(ranks, own))
    for (size_t at = 0; at < theirs.size(); ++at) squares[at % squares.size()] += theirs[at];
  for (size_t i = 0; i < squares.size(); ++i)
    if (const double length = std::sqrt(squares[i]); !(length >= kShortest && length <= kLongest))
      throw DataError(fmt::format(
          "'{}' is no basis, or it is damaged: row {} has the length {:.6g}, and rows of a basis, which are "
          "orthonormal, have the length 1 (in Python: array /= numpy.linalg.norm(array, axis=1, "
          "keepdims=True))",
          path, i, length));
}

}  // namespace

void write_basis(const std::string& path, const Basis& basis, Communicator& ranks) {
  const int64_t columns = basis.chunks().columns(), components = basis.components();
  const std::string header = data::make_npy_header({DType::kFloat32, {components, columns}});
  std::optional<NewFile> file;
  if (ranks.rank() == 0) {
    const std::string parent = std::filesystem::path(path).parent_path().string();
    if (!parent.empty()) make_directories(parent);
    file.emplace(path);
    file->write_at(0, std::as_bytes(std::span(header)));
  }
  std::vector<float> block;
  for (int rank = 0; rank < ranks.size(); ++rank) {
    const IndexRange slice = basis.chunks().columns_of(rank, ranks.size());
    for (int64_t done = 0; done < slice.count; done += kColumnsAtOnce) {
      const size_t count = std::min(kColumnsAtOnce, slice.count - done);
      block.resize(components * count);
      if (ranks.rank() == rank)
        for (int64_t i = 0; i < components; ++i)
          basis.read(i, slice.first + done, std::span(block).subspan(i * count, count));
      if (rank > 0) ranks.broadcast(std::as_writable_bytes(std::span(block)), rank);
      if (!file) continue;
      for (int64_t i = 0; i < components; ++i)
        file->write_at(header.size() + (i * columns + slice.first + done) * sizeof(float),
                       std::as_bytes(std::span(block).subspan(i * count, count)));
    }
  }
  if (file) file->publish();
  ranks.barrier();  // it is there for all
}

Basis read_basis(const std::string& path, int64_t components, int64_t columns, Communicator& ranks,
                 const Workers& workers, DType dtype) {
  const InputFile file(path);
  const uint64_t bytes = file.bytes();
  std::vector<std::byte> first(std::min<uint64_t>(bytes, 64 << 10));
  file.read_at(0, first);
  const data::NpyHeader header = data::parse_npy_header(first, path);
  const Shape& shape = header.type.shape;
  require_plain_float32(header, path);
  if (shape.rank() != 2 || shape[0] != components || shape[1] != columns)
    throw Conflict(fmt::format(
        "the basis '{}' is {}; this run needs [{}, {}]: dim_reduce.n_components rows, and a column "
        "for each of the model's trained weights",
        path, to_string(shape), components, columns));
  if (bytes != header.data_begin + header.type.bytes())
    throw DataError(fmt::format("'{}' has {} bytes; {} and its header need {}", path, bytes,
                                to_string(header.type), header.data_begin + header.type.bytes()));
  Basis basis(components, columns, ranks.rank(), ranks.size(), dtype);
  std::vector<std::exception_ptr> errors(basis.own_chunks().count);
  std::vector<double> squares(basis.own_chunks().count * components, 0.0);
  workers(basis.own_chunks().count, [&](int64_t index) {
    try {
      const IndexRange chunk = basis.chunks().chunk(basis.own_chunks().first + index);
      std::vector<float> row(chunk.count);
      for (int64_t i = 0; i < components; ++i) {
        file.read_at(header.data_begin + (i * columns + chunk.first) * sizeof(float),
                     std::as_writable_bytes(std::span(row)));
        const auto wrong = std::ranges::find_if(row, [](float value) { return !std::isfinite(value); });
        if (wrong != row.end())
          throw DataError(fmt::format("'{}' has a value that is not finite in row {}, column {}", path, i,
                                      chunk.first + (wrong - row.begin())));
        double& sum = squares[index * components + i];
        for (const float value : row) sum += static_cast<double>(value) * value;
        basis.write(i, chunk.first, row);
      }
    } catch (...) {
      errors[index] = std::current_exception();
    }
  });
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
  require_unit_rows(squares, components, ranks, path);
  return basis;
}

}  // namespace mox::boost
