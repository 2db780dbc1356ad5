#include "moxing/image_sets/internal/readable_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "moxing/config/flags.h"
#include "moxing/config/state.h"
#include "runtime/base/log.h"
#include "runtime/base/resource_limits.h"
#include "runtime/data/pipeline.h"
#include "runtime/job/job.h"

namespace mox::data::internal {
namespace {

// A byte for each sample: whether it can be read.
class Readability : public RandomAccessSource {
 public:
  Readability(int64_t count, const std::function<bool(int64_t)>& can_read,
              const std::function<void(int64_t)>& will_read, std::string set)
      : count_(count), can_read_(can_read), will_read_(will_read), set_(std::move(set)) {}
  int64_t size() const override { return count_; }
  const std::vector<TensorType>& signature() const override { return signature_; }
  void will_read(int64_t index) const override { will_read_(index); }
  void read(int64_t index, const SampleContext&, std::span<std::byte* const> components) const override {
    components[0][0] = std::byte{can_read_(index)};
  }
  std::string describe() const override { return set_; }

 private:
  int64_t count_;
  const std::function<bool(int64_t)>& can_read_;
  const std::function<void(int64_t)>& will_read_;
  const std::string set_;
  const std::vector<TensorType> signature_ = {{DType::kUInt8, Shape{}}};
};

int threads_of_rank() {
  const int64_t given = mox::internal::is_configured() ? get_flag<int64_t>("data_threads") : 0;
  return given > 0 ? static_cast<int>(given)
                   : std::max(1, available_cores() / mox::internal::job().local_size());
}

}  // namespace

std::vector<int64_t> readable_samples(int64_t count, const std::function<bool(int64_t)>& can_read,
                                      const std::function<void(int64_t)>& will_read, const std::string& set,
                                      SourceLocation where) {
  constexpr int64_t kBatch = 16;
  const mox::internal::JobActivity activity("looking for samples that cannot be read");
  log_info(fmt::format("reading {} samples once, to leave out those that cannot be read", count));
  const auto source = std::make_shared<Readability>(count, can_read, will_read, set);
  Pipeline pipeline(Dataset::from_source(source, where).batch(kBatch, false, where),
                    {.threads = threads_of_rank()}, {}, where);
  std::vector<int64_t> readable;
  int64_t at = 0;
  for (Batch batch; pipeline.next(&batch);)
    for (const uint8_t can_be_read : std::as_const(batch.components[0]).values<uint8_t>()) {
      if (can_be_read) readable.push_back(at);
      ++at;
    }
  return readable;
}

}  // namespace mox::data::internal
