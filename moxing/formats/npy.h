// NumPy's files (numpy.lib.format, versions 1 to 3): .npy, one array, and .npz, a zip archive of them.
//
// dtypes: f4, i4, i8, u1 and b1; without loss, f2 becomes float32, i1, i2 and u2 int32, and u4 int64. Either
// byte order, C or Fortran order (the array is then put into C order), headers as older NumPys and other
// writers spell them. NumPy's default, <f8, has no dtype here: save array.astype('float32'). Sizes are
// validated against the file before anything is allocated; files and archives are read into the arrays
// themselves, no array nobody asks for. Object arrays, which are pickles, are refused.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/source_location.h"
#include "runtime/data/dataset.h"
#include "runtime/data/memory_budget.h"
#include "runtime/tensor/array.h"

namespace mox::data {

// Throws NotFound or IoError for the file, DataError (path, offset) for its content.
Array read_npy(const std::string& path);

// The arrays of an archive by name ("images" for images.npy), stored or deflated, of any size (zip64);
// checksums are verified.
// Members that are no .npy files are passed over.
std::map<std::string, Array> read_npz(const std::string& path);
// Only the arrays `names`, whatever the others hold. NotFound names the arrays that are there.
std::map<std::string, Array> read_npz(const std::string& path, const std::vector<std::string>& names);

// The same from bytes in memory; `name` stands for the path in messages.
Array parse_npy(std::span<const std::byte> content, const std::string& name);
std::map<std::string, Array> parse_npz(std::span<const std::byte> content, const std::string& name);

// What a .npy file says before its values.
struct NpyHeader {
  TensorType type;     // of the array that is read
  std::string stored;  // the values in the file: kind and bytes, such as "f2" or "i4"
  bool big_endian = false, fortran_order = false;
  // Whether the file's bytes are the array's.
  bool plain() const;
  size_t data_begin = 0;  // the offset of the values in the file
};
// From the file's first bytes, of which 64 KiB are always enough. Throws DataError as parse_npy does.
NpyHeader parse_npy_header(std::span<const std::byte> first_bytes, const std::string& name);
// Of arrays of an archive, by their names: what is stored. Their values are not read, and not checked. Throws
// as read_npz.
std::map<std::string, NpyHeader> read_npz_headers(const std::string& path,
                                                  const std::vector<std::string>& names);
// The bytes in front of the values of a file of version 1: their number is a multiple of 64. Throws
// InvalidArgument for a type that NumPy does not have.
std::string make_npy_header(const TensorType& type);
// The same of values that no dtype has: `code` is what NumPy calls their type, such as <U7 for text.
std::string make_npy_header(std::string_view code, const Shape& shape);

// Samples from files: an element has one component for each of `paths`, row i of its array. Rows are read
// from the files, which must be there and stay as they are meanwhile, when they are first used, a mebibyte at
// a time, and kept in memory as far as npy_memory() has room for them: beyond that, and of the largest files
// where the arrays together take more than all of it, rows are read each time. A file of Fortran's order is
// read whole at once, and kept. Throws as read_npy, but for values, which are looked at as they are read;
// InvalidArgument for no paths, DataError for an array without rows to take and for arrays with different
// numbers of rows, naming the files. While samples are read: DataError, naming the file, for one that has
// been written to or cut since; of one that another was renamed over the old content is read.
Dataset npy(const std::vector<std::string>& paths, SourceLocation where = SourceLocation::current());

// The memory that rows of npy() are kept in, of which they leave a quarter free: a quarter of what this
// process may have; in mox::run what all its data pipelines hold together (data_memory_mb). Holds for what is
// made afterwards. Threads: any.
void set_npy_memory(std::shared_ptr<MemoryBudget> memory);
std::shared_ptr<MemoryBudget> npy_memory();

// The same from the arrays `names` of one archive, which are all held in memory. NotFound names the arrays
// that are there.
Dataset npz(const std::string& path, const std::vector<std::string>& names,
            SourceLocation where = SourceLocation::current());

}  // namespace mox::data
