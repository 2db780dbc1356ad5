// MoXing's text form of a schedule: "5:0.1->0.4,10:0.4=>0.8,15:0.8,20:0.08", or with ends in steps.
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "moxing/schedules/internal/schedule_functions.h"
#include "runtime/base/error.h"

namespace mox::internal {
namespace {

struct Segment {
  double end;  // in the unit of the schedule
  double from, to;
  bool exponential;
};

class Segments final : public ScheduleFunction {
 public:
  Segments(std::string text, std::vector<Segment> segments, TrainingLength::Unit unit)
      : text_(std::move(text)), segments_(std::move(segments)), unit_(unit) {}

  double value(int64_t step, double steps_per_epoch) const override {
    double elapsed = TrainingLength(segments_.back().end, unit_).elapsed(step, steps_per_epoch);
    double begin = 0;
    for (const Segment& segment : segments_) {
      elapsed = snapped(elapsed, segment.end);
      if (elapsed < segment.end) {
        const double part = (elapsed - begin) / (segment.end - begin);
        if (segment.exponential) return segment.from * std::pow(segment.to / segment.from, part);
        return segment.from + (segment.to - segment.from) * part;
      }
      begin = segment.end;
    }
    return segments_.back().to;
  }
  bool needs_steps_per_epoch() const override { return unit_ == TrainingLength::Unit::kEpochs; }
  std::string description() const override {
    return fmt::format("{} ({}, then {})", text_, needs_steps_per_epoch() ? "epochs" : "steps",
                       segments_.back().to);
  }
  std::optional<std::string> text() const override { return text_; }

 private:
  std::string text_;
  std::vector<Segment> segments_;
  TrainingLength::Unit unit_;
};

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  std::shared_ptr<const ScheduleFunction> parse() {
    const double first = number("a number, or segments such as \"5:0.1->0.4\"");
    if (at_end()) return constant_function(first);
    std::vector<Segment> segments;
    double end = first;
    size_t end_column = 0;
    for (;;) {
      unit(segments.empty());
      if (!(end > (segments.empty() ? 0.0 : segments.back().end)))
        fail(end_column, segments.empty() ? "an end > 0"
                                          : fmt::format("an end after {}, where the segment before it ends",
                                                        segments.back().end));
      expect(":", "':' and the value of the segment");
      segments.push_back(values(end));
      if (at_end()) break;
      expect(",", "',' and the next segment, or the end of the text");
      skip_spaces();
      end_column = position_;
      end = number("the end of the segment");
    }
    return std::make_shared<Segments>(std::string(text_), std::move(segments), unit_);
  }

 private:
  // The unit of an end, if it is written; the first end decides for all that do not say theirs.
  void unit(bool first) {
    skip_spaces();
    const size_t column = position_;
    const bool in_steps = accept("steps") || accept("step");
    if (!in_steps && !accept("epochs") && !accept("epoch")) return;
    const auto written = in_steps ? TrainingLength::Unit::kSteps : TrainingLength::Unit::kEpochs;
    if (first) unit_ = written;
    if (unit_ != written)
      fail(column, in_steps ? "epochs, as in the first segment" : "steps, as in the first segment");
  }

  Segment values(double end) {
    skip_spaces();
    const size_t from_column = position_;
    const double from = number("a value");
    const bool linear = accept("->");
    const bool exponential = !linear && accept("=>");
    if (!linear && !exponential) return {end, from, from, false};
    skip_spaces();
    const size_t to_column = position_;
    const double to = number("the value that the segment ends with");
    if (exponential && !(from > 0))
      fail(from_column, "a value > 0, since the segment is exponential (\"=>\")");
    if (exponential && !(to > 0)) fail(to_column, "a value > 0, since the segment is exponential (\"=>\")");
    return {end, from, to, exponential};
  }

  double number(std::string_view expected) {
    skip_spaces();
    double value = 0;
    const char* begin = text_.data() + position_;
    const auto [rest, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc() || !std::isfinite(value)) fail(position_, expected);
    position_ += rest - begin;
    return value;
  }

  bool accept(std::string_view token) {
    skip_spaces();
    if (text_.substr(position_, token.size()) != token) return false;
    position_ += token.size();
    return true;
  }

  void expect(std::string_view token, std::string_view expected) {
    if (!accept(token)) fail(position_, expected);
  }

  bool at_end() {
    skip_spaces();
    return position_ == text_.size();
  }

  void skip_spaces() {
    while (position_ < text_.size() && text_[position_] == ' ') ++position_;
  }

  [[noreturn]] void fail(size_t column, std::string_view expected) const {
    const std::string found =
        column >= text_.size() ? "the end of the text" : fmt::format("\"{}\"", text_.substr(column, 20));
    throw InvalidArgument(
        fmt::format("schedule \"{}\", column {}: expected {}, found {}. The form is END:VALUE, END:FROM->TO "
                    "(straight line) or END:FROM=>TO (exponential), separated by commas, END in epochs (or "
                    "\"500 steps\"); for example \"5:0.1->0.4,10:0.4=>0.8,15:0.8,20:0.08\"",
                    text_, column + 1, expected, found));
  }

  std::string_view text_;
  size_t position_ = 0;
  TrainingLength::Unit unit_ = TrainingLength::Unit::kEpochs;
};

}  // namespace

std::shared_ptr<const ScheduleFunction> parse_schedule(std::string_view text) { return Parser(text).parse(); }

}  // namespace mox::internal
