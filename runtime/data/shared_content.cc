#include "runtime/data/shared_content.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "runtime/base/error.h"
#include "runtime/data/content_sample.h"
#include "runtime/data/internal/cursor.h"
#include "runtime/data/internal/node.h"

namespace mox {
namespace {

const RandomAccessSource* only_source_of(const Dataset& dataset) {
  const std::vector<const RandomAccessSource*> sources = dataset.node()->sources();
  return sources.size() == 1 ? sources[0] : nullptr;
}

bool is_whole(const Dataset& dataset, const RandomAccessSource& source) {
  return dataset.epoch_size() == source.size();
}

// Which sample, and its checksum: of "sample 37 ('1.jpg') of image folder(...): 9a0c11f2" the number and what
// follows the last colon. Names and descriptions differ with the place and the augmentation.
std::string place_and_content(const std::string& line) {
  const std::string_view begin = "sample ";
  const size_t number_end = line.find(' ', begin.size()), content = line.rfind(": ");
  if (!line.starts_with(begin) || number_end == std::string::npos || content == std::string::npos) return "";
  const std::string_view checksum = std::string_view(line).substr(content);
  if (checksum.find("cannot") != std::string_view::npos) return "";
  return line.substr(begin.size(), number_end - begin.size()) + std::string(checksum);
}

// "dark/1.jpg" of a path; "" of a sample without a name.
std::string end_of_path(const std::string& name) {
  const size_t last = name.rfind('/');
  if (last == std::string::npos || last == 0) return name;
  const size_t before = name.rfind('/', last - 1);
  return before == std::string::npos ? name : name.substr(before + 1);
}

// Nothing of a sample that cannot be read, which whoever needs it says.
std::optional<uint32_t> content_of(const RandomAccessSource& source, int64_t index) {
  try {
    return source.content_checksum(index);
  } catch (const Error&) {
    return std::nullopt;
  }
}

constexpr int64_t kMostNames = 1 << 20;  // to look through

std::optional<SharedContent> of_same_names(const RandomAccessSource& trained,
                                           const RandomAccessSource& evaluated,
                                           const std::vector<std::string>& evaluated_lines) {
  if (trained.size() == 0 || trained.size() > kMostNames || trained.name(0).empty()) return std::nullopt;
  std::map<std::string, int64_t> wanted;
  for (const std::string& line : evaluated_lines) {
    int64_t index = 0;
    const std::string place = place_and_content(line);
    if (std::from_chars(place.data(), place.data() + place.size(), index).ec == std::errc() &&
        index < evaluated.size())
      wanted.emplace(end_of_path(evaluated.name(index)), index);
  }
  wanted.erase("");
  SharedContent shared{.same = 0, .looked_at = evaluated_lines.size(), .name = "", .trained_name = ""};
  for (int64_t i = 0; i < trained.size() && !wanted.empty(); ++i) {
    const auto found = wanted.find(end_of_path(trained.name(i)));
    if (found == wanted.end()) continue;
    const auto content = content_of(trained, i);
    if (!content || content != content_of(evaluated, found->second)) continue;
    if (shared.same++ == 0) {
      shared.name = evaluated.name(found->second);
      shared.trained_name = trained.name(i);
    }
    wanted.erase(found);
  }
  if (shared.same == 0 || 2 * shared.same < shared.looked_at) return std::nullopt;
  return shared;
}

// Of data of the same number and order.
std::optional<SharedContent> at_same_places(const std::vector<std::string>& trained,
                                            const RandomAccessSource& evaluated,
                                            const std::vector<std::string>& evaluated_lines) {
  std::set<std::string> known;
  for (const std::string& line : trained) known.insert(place_and_content(line));
  known.erase("");
  SharedContent shared{.same = 0,
                       .looked_at = evaluated_lines.size(),
                       .name = evaluated.size() > 0 ? evaluated.name(0) : "",
                       .trained_name = ""};
  for (const std::string& line : evaluated_lines) shared.same += known.contains(place_and_content(line));
  if (shared.same == 0 || 2 * shared.same < std::max(evaluated_lines.size(), trained.size()))
    return std::nullopt;
  return shared;
}

}  // namespace

std::optional<SharedContent> shared_content(const std::vector<std::string>& training,
                                            const Dataset& evaluation) {
  const RandomAccessSource* evaluated = only_source_of(evaluation);
  if (!evaluated || training.empty() || !is_whole(evaluation, *evaluated)) return std::nullopt;
  return at_same_places(training, *evaluated, content_sample(evaluation));
}

std::optional<SharedContent> shared_content(const Dataset& training, const Dataset& evaluation) {
  const RandomAccessSource *trained = only_source_of(training), *evaluated = only_source_of(evaluation);
  if (!trained || !evaluated) return std::nullopt;
  const bool trains_on_all = is_whole(training, *trained);
  if (!trains_on_all && !is_whole(evaluation, *evaluated)) return std::nullopt;
  const std::vector<std::string> lines = content_sample(evaluation);
  if (trained->size() != evaluated->size())
    return trains_on_all ? of_same_names(*trained, *evaluated, lines) : std::nullopt;
  auto shared = at_same_places(content_sample(training), *evaluated, lines);
  if (shared) shared->trained_name = trained->name(0);
  return shared;
}

std::vector<std::string> contents_of_cursor(const std::string& cursor) {
  try {
    return data::internal::cursor_from_json(cursor).contents;
  } catch (const DataError&) {
    return {};
  }
}

}  // namespace mox
