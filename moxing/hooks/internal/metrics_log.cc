#include "moxing/hooks/internal/metrics_log.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "moxing/hooks/internal/thinned_lines.h"
#include "moxing/hooks/metric_names.h"
#include "moxing/json/many_blanks.h"
#include "moxing/json/parse_json.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/input_file.h"
#include "runtime/base/local_name.h"
#include "runtime/base/log.h"

namespace mox::internal {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kBlock = 64 << 10;
constexpr size_t kLongestLine = size_t{16} << 20;

// `work`, whose error says what becomes of the run.
auto guarded(const std::string& path, const auto& work) {
  try {
    return work();
  } catch (const IoError& error) {
    const char* const advice =
        dynamic_cast<const UnusablePlace*>(&error) ? "mend that" : "make room or make the directory writable";
    throw_alike(error,
                fmt::format("cannot write the metrics file '{}': {}. The checkpoints are untouched; {}, "
                            "and run again to go on from the latest",
                            path, error.what(), advice));
  }
}

// Gives the lines of a file from the last to the first. A piece behind the last line's end counts as a line.
class LinesFromTheEnd {
 public:
  explicit LinesFromTheEnd(const std::string& path) : path_(path), unread_(file_.bytes()), end_(unread_) {}

  // Takes the line before the last one taken; false at the file's beginning. Throws DataError for a line that
  // nobody has written.
  bool next(std::string* line) {
    // Its own line end is not the one before it.
    size_t begin = held_.size() < 2 ? std::string::npos : held_.rfind('\n', held_.size() - 2);
    std::vector<std::string> blocks;  // before what is held, the last first
    for (size_t taken = held_.size(); begin == std::string::npos && unread_ > 0;
         taken += blocks.back().size()) {
      if (taken > kLongestLine)
        throw DataError(
            fmt::format("'{}' has a line of more than {} MiB before byte {}, which no run has "
                        "written: move the file elsewhere, and run again",
                        path_, kLongestLine >> 20, end_));
      std::string& block = blocks.emplace_back(std::min(unread_, kBlock), '\0');
      file_.read_at(unread_ - block.size(), std::as_writable_bytes(std::span(block)));
      unread_ -= block.size();
      // The last byte of the file ends a line of its own.
      const bool ends_text = taken == 0;
      begin = block.rfind('\n', ends_text && block.size() > 1 ? block.size() - 2 : std::string::npos);
      if (ends_text && block.size() == 1) begin = std::string::npos;
    }
    std::string text;
    for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) text += *block;
    held_.insert(0, text);
    if (held_.empty()) return false;
    begin = begin == std::string::npos ? 0 : begin + 1;
    *line = held_.substr(begin);
    held_.resize(begin);
    end_ -= line->size();
    return true;
  }
  uint64_t begin() const { return end_; }  // of the line taken last

 private:
  const std::string path_;
  const InputFile file_{path_};
  uint64_t unread_, end_;
  std::string held_;
};

// What is asked of a line: the step, and whether it is of an evaluation. The values become no objects, which
// a line of a file that others have written has more of than fits. Of a name that is there twice
// the last counts.
class LineFields : public Json::json_sax_t {
 public:
  // False if the line is no object of JSON.
  bool read(std::string_view line) {
    return !has_many_blanks(line) && Json::sax_parse(line.begin(), line.end(), this) && is_object_;
  }

  std::optional<double> step;
  int64_t whole_step = -1;  // -1: it has a fraction, or there is none
  bool has_evaluation = false;

  bool start_object(size_t) override { return open(true); }
  bool start_array(size_t) override { return open(false); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(std::string& name) override {
    if (depth_ != 1) return true;
    is_step_ = name == kStepField;
    if (is_step_) step.reset(), whole_step = -1;
    has_evaluation = has_evaluation || name == kEvaluationField;
    return true;
  }
  bool number_integer(int64_t value) override { return take(static_cast<double>(value), value); }
  bool number_unsigned(uint64_t value) override {
    return take(static_cast<double>(value), std::in_range<int64_t>(value) ? static_cast<int64_t>(value) : -1);
  }
  bool number_float(double, const std::string& text) override { return take(json_number(text), -1); }
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool string(std::string&) override { return true; }
  bool binary(Json::binary_t&) override { return true; }
  bool parse_error(size_t, const std::string&, const Json::exception&) override { return false; }

 private:
  bool open(bool is_object) {
    if (depth_++ == 0) is_object_ = is_object;
    return true;
  }
  bool close() { return --depth_, true; }
  bool take(double value, int64_t whole) {
    if (depth_ == 1 && is_object_ && is_step_) step = value, whole_step = whole;
    return true;
  }

  int depth_ = 0;
  bool is_object_ = false;  // the whole
  bool is_step_ = false;    // the name before the value
};

bool is_of_a_step(std::string_view line) {
  return line.find("\"evaluation\":") == std::string_view::npos &&
         line.find("\"prediction\":") == std::string_view::npos;
}

// The lines of a text, each with its end.
std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    lines.push_back(text.substr(0, std::min(text.find('\n'), text.size() - 1) + 1));
    text.remove_prefix(lines.back().size());
  }
  return lines;
}

}  // namespace

void MetricsLog::open(const std::string& path, int64_t step) {
  close();
  path_ = path;
  evaluated_step_ = -1;
  guarded(path_, [&] {
    file_ = open_kept_file(path_);
    cut_after(step);
  });
}

void MetricsLog::cut_after(int64_t step) {
  LinesFromTheEnd lines(path_);
  std::vector<std::string> kept;  // evaluations of kept steps between lines that go, the last first
  bytes_ = 0;                     // up to a line that stays
  bool is_changed = false;
  for (std::string line; lines.next(&line);) {
    LineFields fields;
    const bool stays =
        line.back() == '\n' && fields.read(line) && fields.step && *fields.step <= static_cast<double>(step);
    if (stays && evaluated_step_ < 0 && fields.has_evaluation && fields.whole_step >= 0)
      evaluated_step_ = fields.whole_step;
    if (stays && is_of_a_step(line) && *fields.step < static_cast<double>(step)) {
      bytes_ = lines.begin() + line.size();
      break;
    }
    if (stays)
      kept.push_back(line);
    else
      is_changed = true;
  }
  std::string text;
  for (auto line = kept.rbegin(); line != kept.rend(); ++line) text += *line;
  if (is_changed) {
    if (::ftruncate(file_.get(), bytes_) != 0)
      throw IoError(fmt::format("cannot cut '{}': {}", path_, std::strerror(errno)));
    append_to(file_, path_, text);
  }
  bytes_ += text.size();
}

void MetricsLog::write(const nlohmann::ordered_json& line) {
  const std::string text = line.dump() + '\n';
  guarded(path_, [&] {
    append_to(file_, path_, text);
    bytes_ += text.size();
    if (bytes_ > most_bytes_) thin();
  });
}

void MetricsLog::thin() {
  const std::string all = read_open_file(file_, path_);  // whatever has its name by now
  std::vector<LoggedLine> logged;
  const std::vector<std::string_view> lines = lines_of(all);
  for (const std::string_view line : lines) {
    LineFields fields;
    const bool is_read = fields.read(line) && fields.step;
    logged.push_back({line.size(), is_read ? fields.whole_step : -1, is_of_a_step(line)});
  }
  const std::vector<bool> stays = lines_that_stay(logged, most_bytes_ / 4 * 3);
  std::string kept;
  bool evaluations_stay = true;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (stays[i]) kept += lines[i];
    evaluations_stay = evaluations_stay && (stays[i] || logged[i].is_of_a_step);
  }
  // What an evaluation beside the run has written meanwhile.
  if (const std::string now = read_open_file(file_, path_); now.size() > all.size())
    kept += now.substr(all.size());
  write_file_atomically(path_, kept);
  file_ = open_kept_file(path_);
  bytes_ = kept.size();
  log_info(fmt::format("'{}' has grown to {} MiB: the older a step, the fewer lines of its time stay{}",
                       path_, all.size() >> 20,
                       evaluations_stay ? "; evaluations do" : ", of evaluations, too"));
  // Where lines are huge, or none of a run's; not the same work for each line then.
  if (bytes_ > most_bytes_ / 8 * 7) most_bytes_ = 2 * bytes_;
}

}  // namespace mox::internal
