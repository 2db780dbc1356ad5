#include "runtime/data/findings.h"

#include <fmt/format.h>

#include <charconv>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/data/internal/node.h"

namespace mox {
namespace {

std::vector<const RandomAccessSource*> sources_of(const Dataset& dataset) {
  return dataset.node()->sources();
}

// The number at the start of `text`, and `end` behind it; both are taken off.
size_t take_number(std::string_view* text, char end) {
  size_t number = 0;
  const auto [rest, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  const size_t digits = rest - text->data();
  if (error != std::errc() || digits == text->size() || *rest != end)
    throw DataError("what another rank has found in its data cannot be read: the ranks differ");
  text->remove_prefix(digits + 1);
  return number;
}

}  // namespace

// "SOURCE BYTES:" and the bytes, one after the other.
std::string take_findings(const Dataset& dataset) {
  const auto sources = sources_of(dataset);
  std::string text;
  for (size_t i = 0; i < sources.size(); ++i)
    if (const std::string found = sources[i]->take_findings(); !found.empty())
      text += fmt::format("{} {}:{}", i, found.size(), found);
  return text;
}

void add_findings(const Dataset& dataset, std::string_view findings) {
  const auto sources = sources_of(dataset);
  while (!findings.empty()) {
    const size_t source = take_number(&findings, ' '), bytes = take_number(&findings, ':');
    if (source >= sources.size() || bytes > findings.size())
      throw DataError("what another rank has found is of other data than this rank's: the ranks differ");
    sources[source]->add_findings(findings.substr(0, bytes));
    findings.remove_prefix(bytes);
  }
}

}  // namespace mox
