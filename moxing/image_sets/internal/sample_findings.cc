#include "moxing/image_sets/internal/sample_findings.h"

#include <fmt/format.h>

#include <charconv>
#include <iterator>
#include <utility>

#include "runtime/base/error.h"

namespace mox::data::internal {
namespace {

void append(const SampleFinding& finding, std::string* text) {
  fmt::format_to(std::back_inserter(*text), "{} {} {} {}:{}", finding.index, finding.number,
                 finding.is_good ? 1 : 0, finding.reason.size(), finding.reason);
}

[[noreturn]] void fail() {
  throw DataError("what another rank says of the samples that it has read cannot be understood");
}

// The number at the start of `text` and the character after it, which are taken off.
int64_t take_number(std::string_view* text, char after) {
  int64_t number = 0;
  const auto [rest, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc() || rest == text->data() + text->size() || *rest != after) fail();
  text->remove_prefix(std::string_view(text->data(), rest).size() + 1);
  return number;
}

}  // namespace

std::vector<SampleFinding> findings_from_text(std::string_view text, int64_t samples) {
  std::vector<SampleFinding> findings;
  while (!text.empty()) {
    SampleFinding finding;
    finding.index = take_number(&text, ' ');
    finding.number = take_number(&text, ' ');
    finding.is_good = take_number(&text, ' ') != 0;
    const int64_t length = take_number(&text, ':');
    if (finding.index < 0 || finding.index >= samples || length < 0 || length > std::ssize(text)) fail();
    finding.reason = text.substr(0, length);
    text.remove_prefix(finding.reason.size());
    findings.push_back(std::move(finding));
  }
  return findings;
}

void SampleFindings::add_good(int64_t index, int64_t number) {
  const std::lock_guard lock(mutex_);
  good_.push_back({index, number});
}

void SampleFindings::add_bad(int64_t index, int64_t number, const std::string& reason) {
  const std::lock_guard lock(mutex_);
  if (known_bad_.insert(index).second) bad_.push_back({.index = index, .number = number, .reason = reason});
}

void SampleFindings::note_bad_elsewhere(int64_t index) {
  const std::lock_guard lock(mutex_);
  known_bad_.insert(index);
}

std::string SampleFindings::take() {
  const std::lock_guard lock(mutex_);
  if (known_bad_.empty()) return "";
  std::string text;
  // Before the bad ones, which are judged by them.
  for (const Good& good : good_) append({.index = good.index, .number = good.number, .is_good = true}, &text);
  for (const SampleFinding& bad : bad_) append(bad, &text);
  good_ = {};
  bad_.clear();
  return text;
}

}  // namespace mox::data::internal
