// Any texts are the state of a training's checkpoint, which survives being written, or a DataError. One a
// line, as "key=text"; each is also what a hook, the best state and the place in the data are read from.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "moxing/checkpoint/best_checkpoint.h"
#include "moxing/engine/session/internal/training/best_values.h"
#include "moxing/engine/session/training_state.h"
#include "moxing/hooks/internal/metric_monitor.h"
#include "runtime/base/error.h"
#include "runtime/data/internal/cursor.h"

namespace {

// `read` gives what it has read as text. Of this it gives the same again.
template <typename Read>
void survives(const std::string& text, const Read& read) {
  std::string written;
  try {
    written = read(text);
  } catch (const mox::DataError&) {
    return;
  }
  MOX_ASSERT(read(written) == written, "what is read is what is written");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace mox::internal;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  mox::Checkpoint checkpoint;
  constexpr size_t kMost = 64;  // the map is ours, and takes memory
  while (!rest.empty() && checkpoint.state.size() < kMost) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    const size_t end = std::min(line.find('='), line.size());
    checkpoint.state[std::string(line.substr(0, end))] = line.substr(std::min(end + 1, line.size()));
  }
  for (const auto& [key, text] : checkpoint.state) {
    survives(text, [](const std::string& of) {
      BestValues values;
      values.from_json(of);
      return values.to_json();
    });
    survives(text, [](const std::string& of) {
      MetricMonitor monitor({.metric = "loss"});
      monitor.restore_state(of);
      std::string saved = monitor.save_state();
      monitor.add({{"loss", 1}}, 1);
      return saved;
    });
    survives(text, [](const std::string& of) {
      mox::Checkpoint best;
      best.state["best"] = of;
      return to_json(*mox::best_mark_of(best));
    });
    survives(text, [](const std::string& of) {
      return mox::data::internal::to_json(mox::data::internal::cursor_from_json(of));
    });
  }
  try {
    checkpoint.state = to_checkpoint_state(from_checkpoint_state(checkpoint, "input"));
  } catch (const mox::DataError&) {
    return 0;
  }
  MOX_ASSERT(to_checkpoint_state(from_checkpoint_state(checkpoint, "input")) == checkpoint.state,
             "what is read is what is written");
  return 0;
}
