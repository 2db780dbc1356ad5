#include "moxing/formats/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>

#include "moxing/formats/internal/byte_source.h"
#include "moxing/formats/internal/npy_rows.h"
#include "moxing/formats/internal/npy_values.h"
#include "moxing/formats/internal/zip.h"
#include "runtime/base/error.h"
#include "runtime/base/opened_file.h"

namespace mox::data {
namespace {

using internal::ByteSource;
using internal::ByteStream;
using internal::FileSource;
using internal::MemorySource;
using internal::NpyBegin;
using internal::NpyConversion;
using internal::NpyPlace;
using internal::SourceStream;
using internal::stored_bytes;

Array array_for(const TensorType& type, const std::string& name) {
  try {
    return Array::uninitialized(type);
  } catch (const OutOfMemory& error) {
    throw OutOfMemory(fmt::format(
        "'{}': {}; the arrays of .npy and .npz files are held in memory whole, whatever data_memory_mb says: "
        "raise the limit (ulimit -v, the control group's), or write the rows as TFRecord files, which are read a "
        "record at a time, within data_memory_mb",
        name, error.what()));
  }
}

// Straight into the array's memory where its bytes are the file's.
Array read_array(ByteStream& content, const std::string& name) {
  const uint64_t file_bytes = content.left();
  const NpyBegin begin(content, name);
  const NpyHeader& header = begin.header;
  const TensorType& type = header.type;
  const NpyPlace place{name, header.data_begin};
  const size_t value_bytes = stored_bytes(header);
  const uint64_t bytes = internal::bytes_of_values(header, file_bytes, name);
  Array array = array_for(type, name);
  const std::span<const std::byte> first = begin.values();
  const bool are_bools = type.dtype == DType::kBool;
  if (header.plain()) {
    const std::span<std::byte> all(array.data(), bytes);
    std::ranges::copy(first, all.begin());
    content.read(all.subspan(first.size()));
    if (are_bools) place.require_bools(all, 0);
    return array;
  }
  NpyConversion conversion(header, array);
  std::vector<std::byte> block(first.begin(), first.end());
  for (uint64_t done = 0; done < bytes;) {
    const size_t whole = block.size() - block.size() % value_bytes;
    const std::span<const std::byte> values = std::span(block).first(whole);
    if (are_bools) place.require_bools(values, done);
    conversion.take(values);
    done += whole;
    block.erase(block.begin(), block.begin() + whole);
    constexpr uint64_t kBlock = uint64_t{1} << 20;
    const size_t kept = block.size();
    block.resize(kept + std::min(kBlock, content.left()));
    content.read(std::span(block).subspan(kept));
  }
  return array;
}

NpyHeader read_header(ByteStream& content, const std::string& name) { return NpyBegin(content, name).header; }

// Of the array, once it is read.
size_t size_of_array(ByteStream& content, const std::string& name) {
  const uint64_t file_bytes = content.left();
  const NpyHeader header = read_header(content, name);
  internal::bytes_of_values(header, file_bytes, name);
  return header.type.bytes();
}

// What `parse` makes of the arrays of an archive, or of those of `names`, if given.
template <typename T>
std::map<std::string, T> members_of(const ByteSource& archive, const std::string& name,
                                    const std::vector<std::string>* names,
                                    T (*parse)(ByteStream&, const std::string&)) {
  std::map<std::string, T> members;
  std::string there;
  const auto key_of = [](const std::string& member) { return member.substr(0, member.size() - 4); };
  const auto is_wanted = [&](const std::string& member) {
    if (!member.ends_with(".npy") || member.starts_with("__MACOSX/")) return false;
    const std::string key = key_of(member);
    there += (there.empty() ? "" : ", ") + key;
    return !names || std::find(names->begin(), names->end(), key) != names->end();
  };
  internal::read_zip(archive, name, is_wanted, [&](const std::string& member, ByteStream& content) {
    if (members.contains(key_of(member)))
      throw DataError(fmt::format("'{}': there are two arrays '{}'", name, key_of(member)));
    members.emplace(key_of(member), parse(content, name + ":" + member));
  });
  for (size_t i = 0; names && i < names->size(); ++i)
    if (!members.contains((*names)[i]))
      throw NotFound(fmt::format("'{}' has no array '{}'; it has {}", name, (*names)[i],
                                 there.empty() ? "none" : there));
  return members;
}

// All of an archive, or `names`. Each of them may fit into memory where they do not together.
std::map<std::string, Array> arrays_of(const ByteSource& archive, const std::string& name,
                                       const std::vector<std::string>* names) {
  size_t bytes = 0;
  for (const auto& [key, size] : members_of(archive, name, names, size_of_array)) {
    bytes += size;
    require_memory(bytes, name);
  }
  return members_of(archive, name, names, read_array);
}

// Of the arrays of a data set.
void require_rows(const std::vector<Shape>& shapes, const std::vector<std::string>& names) {
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (shapes[i].rank() == 0)
      throw DataError(
          fmt::format("'{}' is a single number: an array with a row for each sample is expected", names[i]));
    if (shapes[i][0] != shapes[0][0])
      throw DataError(fmt::format("'{}' has {} rows and '{}' has {}: one for each sample is expected in all",
                                  names[0], shapes[0][0], names[i], shapes[i][0]));
  }
}

// What all npy() of the process have, until a run gives its own.
struct NpyMemory {
  std::mutex mutex;
  std::shared_ptr<MemoryBudget> budget = MemoryBudget::of_process();
};
NpyMemory& npy_memory_of_process() {
  static NpyMemory memory;
  return memory;
}

}  // namespace

Array parse_npy(std::span<const std::byte> content, const std::string& name) {
  const MemorySource source(content);
  SourceStream stream(source);
  return read_array(stream, name);
}

std::map<std::string, Array> parse_npz(std::span<const std::byte> content, const std::string& name) {
  return arrays_of(MemorySource(content), name, nullptr);
}

Array read_npy(const std::string& path) {
  const FileSource source(path);
  SourceStream stream(source);
  return read_array(stream, path);
}

std::map<std::string, Array> read_npz(const std::string& path) {
  return arrays_of(FileSource(path), path, nullptr);
}

std::map<std::string, Array> read_npz(const std::string& path, const std::vector<std::string>& names) {
  return arrays_of(FileSource(path), path, &names);
}

std::map<std::string, NpyHeader> read_npz_headers(const std::string& path,
                                                  const std::vector<std::string>& names) {
  return members_of(FileSource(path), path, &names, read_header);
}

Dataset npy(const std::vector<std::string>& paths, SourceLocation where) {
  if (paths.empty()) throw InvalidArgument(fmt::format("npy ({}): no file is given", to_string(where)));
  std::vector<std::unique_ptr<internal::NpyRows>> files;
  std::vector<Shape> shapes;
  std::vector<internal::NpyRows*> by_size;
  for (const std::string& path : paths) {
    files.push_back(std::make_unique<internal::NpyRows>(path));
    shapes.push_back(files.back()->type().shape);
    by_size.push_back(files.back().get());
  }
  require_rows(shapes, paths);
  // Labels are small, and to fetch one takes as long as an image.
  std::ranges::stable_sort(by_size, {}, [](const auto* file) { return file->type().bytes(); });
  const std::shared_ptr<MemoryBudget> memory = npy_memory();
  size_t bytes = 0;
  for (internal::NpyRows* file : by_size) {
    bytes += file->type().bytes();
    if (bytes <= memory->bytes() || file->keeps()) file->keep(memory);
  }
  return Dataset::from_source(internal::npy_source(std::move(files)), where);
}

void set_npy_memory(std::shared_ptr<MemoryBudget> budget) {
  NpyMemory& memory = npy_memory_of_process();
  const std::lock_guard lock(memory.mutex);
  memory.budget = std::move(budget);
}
std::shared_ptr<MemoryBudget> npy_memory() {
  NpyMemory& memory = npy_memory_of_process();
  const std::lock_guard lock(memory.mutex);
  return memory.budget;
}

Dataset npz(const std::string& path, const std::vector<std::string>& names, SourceLocation where) {
  if (names.empty())
    throw InvalidArgument(fmt::format("npz ({}): no array of '{}' is named", to_string(where), path));
  const std::map<std::string, Array> all = read_npz(path, names);
  std::vector<Array> arrays;
  std::vector<std::string> places;
  std::vector<Shape> shapes;
  for (const std::string& name : names) {
    arrays.push_back(all.at(name));
    shapes.push_back(arrays.back().shape());
    places.push_back(path + ":" + name);
  }
  require_rows(shapes, places);
  return Dataset::from_arrays(std::move(arrays), where);
}

}  // namespace mox::data
