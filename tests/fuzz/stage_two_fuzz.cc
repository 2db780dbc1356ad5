// Any text is the state of stage 2 in a checkpoint and that of its search in the subspace, which survives
// being written, or what makes them throw DataError, or Conflict for another basis.
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "moxing/boost/stage_two.h"
#include "runtime/base/conflict.h"
#include "runtime/base/error.h"

namespace {

using namespace mox;
using boost::DimReduce, boost::StageTwo;

constexpr int64_t kComponents = 2, kColumns = 20;
void one_after_the_other(int64_t count, FunctionRef<void(int64_t)> body) {
  for (int64_t i = 0; i < count; ++i) body(i);
}

DimReduce begin_search(Communicator& alone) {
  boost::Basis basis(kComponents, kColumns, 0, 1);
  for (int64_t i = 0; i < kComponents; ++i) basis.write(i, i, std::array{1.0F});
  return {std::move(basis), {}, alone, one_after_the_other};
}

void read_stage_two(const std::string& text, Communicator& alone) {
  StageTwo stage({.n_components = kComponents}, {.log_dir = "log", .snapshots = {}}, alone);
  try {
    StageTwo::Start start;
    start.kept = {.state = text, .residual = {}, .path = "input"};
    stage.prepare({}, start);
  } catch (const DataError&) {
    return;
  }
  MOX_ASSERT(stage.first_step() >= 0, "a step");
  MOX_ASSERT(stage.explained_ratio().size() <= boost::kMostComponents, "a part for each component");
}

void read_search(const std::string& text, Communicator& alone) {
  const Array residual = Array::from<float>({kColumns}, std::array<float, kColumns>{});
  DimReduce search = begin_search(alone), again = begin_search(alone);
  try {
    search.restore(text, residual, "input");
  } catch (const DataError&) {
    return;
  } catch (const Conflict&) {
    return;
  }
  const std::string written = search.save_state();
  again.restore(written, residual, "written");
  MOX_ASSERT(again.save_state() == written, "what is read is what is written");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  Communicator alone;
  read_stage_two(text, alone);
  read_search(text, alone);
  return 0;
}
