#include "moxing/boost/snapshots.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <exception>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

#include "runtime/base/conflict.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/log.h"

namespace mox::boost {
namespace {

constexpr std::string_view kPrefix = "snapshot-", kSuffix = ".safetensors";

std::optional<int64_t> step_of(std::string_view name) {
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return std::nullopt;
  const std::string_view digits =
      name.substr(kPrefix.size(),
                  std::max(name.size(), kPrefix.size() + kSuffix.size()) - kPrefix.size() - kSuffix.size());
  int64_t step = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size() || step < 0 ||
      digits != std::to_string(step))
    return std::nullopt;
  return step;
}

// Which run has written it; "" if it does not say.
std::string run_of(const SafetensorsReader& file) {
  const auto run = file.metadata().find("run");
  return run == file.metadata().end() ? "" : run->second;
}

void require_same_files(const std::vector<SafetensorsReader>& files, const std::string& directory,
                        Communicator& ranks) {
  if (ranks.size() == 1) return;
  std::string seen;
  for (const SafetensorsReader& file : files)
    seen += fmt::format("{} {:08x} {}\n", std::filesystem::path(file.path()).filename().string(),
                        file.stamp().header_crc32, file.stamp().bytes);
  const std::vector<std::string> all = ranks.allgather(seen);
  for (size_t rank = 1; rank < all.size(); ++rank)
    if (all[rank] != all[0])
      throw FailedPrecondition(fmt::format(
          "rank 0 and rank {} see different snapshots in '{}' ({} and {} files): each rank computes a slice "
          "of the basis, so the directory must be on a file system that all machines share",
          rank, directory, std::ranges::count(all[0], '\n'), std::ranges::count(all[rank], '\n')));
}

void delete_snapshot(const SnapshotFile& file) {
  std::error_code error;
  if (!std::filesystem::remove(file.path, error) && error)
    throw IoError(fmt::format("cannot delete '{}': {}", file.path, error.message()));
}

}  // namespace

std::string write_snapshot(const std::string& directory, int64_t step, std::span<const NamedArray> variables,
                           const SnapshotWriting& writing) {
  make_directories(directory);
  const HeldDirectory held(directory, writing.link);
  const std::string name = fmt::format("{}{}{}", kPrefix, step, kSuffix);
  try {
    write_safetensors(held.file(name), variables, {{"step", std::to_string(step)}, {"run", writing.run}});
    if (writing.keep > 0) {
      const std::vector<SnapshotFile> all = list_snapshots(held.path());
      for (size_t i = 0; i + static_cast<size_t>(writing.keep) < all.size(); ++i) delete_snapshot(all[i]);
    }
  } catch (const IoError& error) {
    held.throw_named(error);
  }
  return fmt::format("{}/{}", directory, name);
}

void delete_snapshots_after(const std::string& directory, int64_t step, DirectoryLink link) {
  if (!is_there(directory)) return;
  const HeldDirectory held(directory, link);
  try {
    for (const SnapshotFile& file : list_snapshots(held.path())) {
      if (file.step <= step) continue;
      log_info(held.named(fmt::format(
          "'{}' is later than step {}, from which this run goes on: it is deleted", file.path, step)));
      delete_snapshot(file);
    }
  } catch (const IoError& error) {
    held.throw_named(error);
  }
}

std::vector<SnapshotFile> list_snapshots(const std::string& directory) {
  std::vector<SnapshotFile> files;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error))
    if (const auto step = step_of(entry->path().filename().string()))
      files.push_back({*step, entry->path().string()});
  if (error && error != std::errc::no_such_file_or_directory)
    throw IoError(fmt::format("cannot list '{}': {}", directory, error.message()));
  std::ranges::sort(files, {}, &SnapshotFile::step);
  return files;
}

WeightLayout layout_of_snapshot(const SafetensorsReader& file) {
  std::vector<std::string> names;
  std::vector<Shape> shapes;
  for (const SafetensorsReader::Tensor& tensor : file.tensors()) {
    if (tensor.type.dtype != DType::kFloat32)
      throw Conflict(fmt::format("the snapshot '{}' has '{}' as {}: weights that are trained are float32",
                                 file.path(), tensor.name, to_string(tensor.type)));
    names.push_back(tensor.name);
    shapes.push_back(tensor.type.shape);
  }
  return WeightLayout(std::move(names), shapes);
}

SnapshotSet::SnapshotSet(const std::string& directory, const WeightLayout& expected, Communicator& ranks,
                         const Workers& workers)
    : layout_(expected) {
  for (const SnapshotFile& file : list_snapshots(directory)) files_.emplace_back(file.path);
  require_same_files(files_, directory, ranks);
  if (files_.empty())
    throw NotFound(
        fmt::format("there are no snapshots (snapshot-<step>.safetensors) in '{}'; a run writes them with "
                    "snapshots.every_n_epochs, snapshots.every_n_steps or snapshots.every_n_secs",
                    directory));
  for (const SafetensorsReader& file : files_) {
    const WeightLayout found = layout_of_snapshot(file);
    if (layout_.columns() == 0) layout_ = found;
    if (const std::string difference = found.difference(layout_); !difference.empty())
      throw Conflict(fmt::format("the snapshot '{}' is of another network{}: {}", file.path(),
                                 expected.columns() > 0 ? "" : fmt::format(" than '{}'", files_[0].path()),
                                 difference));
  }
  run_ = run_of(files_[0]);
  for (const SafetensorsReader& file : files_)
    if (run_of(file) != run_)
      throw Conflict(fmt::format(
          "'{}' and '{}' are of two runs: what lies between two runs is no direction in which one "
          "has moved. Give each run's snapshots a directory of their own",
          files_[0].path(), file.path()));
  // Of this rank; all are read by some rank.
  std::vector<size_t> own;
  for (size_t i = 0; i < files_.size(); ++i)
    if (static_cast<int>(i % ranks.size()) == ranks.rank()) own.push_back(i);
  std::vector<std::exception_ptr> errors(own.size());
  workers(own.size(), [&](int64_t i) {
    const size_t index = i;
    try {
      files_[own[index]].verify();
    } catch (...) {
      errors[index] = std::current_exception();
    }
  });
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

void SnapshotSet::read(int64_t vector, int64_t first_column, std::span<float> out) const {
  const auto& variables = layout_.variables();
  const auto after = std::ranges::upper_bound(variables, first_column, {}, &WeightLayout::Variable::first);
  auto index = static_cast<size_t>(after - variables.begin()) - 1;
  for (int64_t left = out.size(); left > 0; ++index) {
    const WeightLayout::Variable& variable = variables[index];
    const int64_t begin = first_column - variable.first,
                  count = std::min(left, variable.shape.elements() - begin);
    if (count > 0) {
      files_[vector].read(index, begin * sizeof(float), std::as_writable_bytes(out.first(count)));
      out = out.subspan(count);
      first_column += count;
      left -= count;
    }
  }
}

std::string SnapshotSet::describe(int64_t vector, int64_t column) const {
  return fmt::format("'{}', {}", files_[vector].path(), layout_.describe(column));
}

}  // namespace mox::boost
