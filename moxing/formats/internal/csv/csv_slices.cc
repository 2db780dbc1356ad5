#include "moxing/formats/internal/csv/csv_slices.h"

#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "runtime/base/file.h"
#include "runtime/base/resource_limits.h"
#include "runtime/data/happens_before.h"
#include "runtime/refusals/promised_workers.h"
#include "runtime/text/utf8.h"

namespace mox::data::internal {
namespace {

// Names for happens_before.h.
constexpr char kSlicesAreCut = 0, kSliceIsTaken = 0;

bool ends_line(char letter) { return letter == '\n' || letter == '\r'; }

// Whether a quote begins a cell: nothing but spaces stands before it there.
bool begins_cell(const char* quote, const char* row, char delimiter) {
  while (quote != row && (quote[-1] == ' ' || quote[-1] == '\t') && quote[-1] != delimiter) --quote;
  return quote == row || quote[-1] == delimiter || ends_line(quote[-1]);
}

// Behind the quote that ends a cell; `end` if none does.
const char* behind_quoted(const char* at, const char* end) {
  for (;;) {
    at = static_cast<const char*>(std::memchr(at, '"', end - at));
    if (!at) return end;
    if (++at == end || *at != '"') return at;
    ++at;
  }
}

// Places that cut the text into slices, the first and the last among them. None is within a character: there
// UTF-8 that is whole has a begin within the three bytes before.
std::vector<size_t> cuts_between_characters(std::string_view text, size_t bytes) {
  constexpr size_t kMostBefore = 3;
  const auto begins_character = [&](size_t at) {
    return (static_cast<unsigned char>(text[at]) & 0xc0) != 0x80;
  };
  bytes = std::max(bytes, kMostBefore + 1);
  std::vector<size_t> cuts{0};
  while (text.size() - cuts.back() > bytes) {
    const size_t wanted = cuts.back() + bytes, least = wanted - kMostBefore;
    size_t cut = wanted;
    while (cut > least && !begins_character(cut)) --cut;
    cuts.push_back(begins_character(cut) ? cut : wanted);
  }
  cuts.push_back(text.size());
  return cuts;
}

}  // namespace

// oneTBB, by itself, knows of no quota.
int CsvSlices::cores_to_use() const { return cores > 0 ? cores : available_cores(); }

void take_on_all_cores(size_t count, const CsvSlices& slices, FunctionRef<void(size_t i)> take) {
  const int cores = static_cast<int>(std::min<size_t>(count, slices.cores_to_use()));
  std::optional<mox::internal::PromisedWorkers> workers;
  if (cores > 1) workers.emplace(cores - 1, 0);
  if (!workers || workers->count() == 0) {
    for (size_t i = 0; i < count; ++i) take(i);
    return;
  }
  publish(&kSlicesAreCut);
  tbb::task_arena arena(1 + workers->count());
  const mox::internal::WorkerCount worker_count(arena);
  arena.execute([&] {
    tbb::parallel_for(size_t{0}, count, [&](size_t i) {
      observe(&kSlicesAreCut);
      take(i);
      publish(&kSliceIsTaken);
    });
  });
  observe(&kSliceIsTaken);
}

size_t next_row(std::string_view text, size_t begin, size_t bytes, char delimiter) {
  if (bytes >= text.size() - begin) return text.size();
  const char* const row = text.data() + begin;
  const char* const end = text.data() + text.size();
  const char* const least = row + bytes;
  for (const char* at = row; at != end;) {
    if (at < least) {
      at = static_cast<const char*>(std::memchr(at, '"', least - at));
      if (!at) at = least - 1;  // it may be a line's end
    }
    while (at != end && *at != '"' && !ends_line(*at)) ++at;
    if (at == end) break;
    if (*at == '"') {
      at = begins_cell(at, row, delimiter) ? behind_quoted(at + 1, end) : at + 1;
      continue;
    }
    at += *at == '\r' && at + 1 != end && at[1] == '\n' ? 2 : 1;
    if (at >= least) return at - text.data();
  }
  return text.size();
}

uint32_t crc32_of_slices(std::string_view text, uint32_t previous, const CsvSlices& slices) {
  const size_t count = (text.size() + slices.bytes - 1) / slices.bytes;
  std::vector<uint32_t> checksums(count);
  const auto slice = [&](size_t i) { return text.substr(i * slices.bytes, slices.bytes); };
  take_on_all_cores(count, slices,
                    [&](size_t i) { checksums[i] = crc32(std::as_bytes(std::span(slice(i)))); });
  for (size_t i = 0; i < count; ++i)
    previous =
        static_cast<uint32_t>(::crc32_combine(previous, checksums[i], static_cast<z_off_t>(slice(i).size())));
  return previous;
}

size_t utf8_prefix_of_slices(std::string_view text, const CsvSlices& slices) {
  const std::vector<size_t> cuts = cuts_between_characters(text, slices.bytes);
  std::vector<size_t> whole(cuts.size() - 1);
  take_on_all_cores(whole.size(), slices, [&](size_t i) {
    whole[i] = cuts[i] + utf8_prefix(text.substr(cuts[i], cuts[i + 1] - cuts[i]));
  });
  for (size_t i = 0; i < whole.size(); ++i)
    if (whole[i] != cuts[i + 1]) return whole[i];
  return text.size();
}

}  // namespace mox::data::internal
