#include "moxing/engine/step/sample_count.h"

#include <cstring>
#include <span>

namespace mox::internal {
namespace {

constexpr int kSamplesTag = 2;

}  // namespace

void SampleCount::begin_step(int64_t own, const std::function<void(int64_t all)>& known) {
  own_ = own;
  if (ranks_.size() == 1) return known(all_ = own);
  told_.resize(ranks_.size());
  telling_ = ranks_.start(make_allgather(std::as_bytes(std::span(&own_, 1)), &told_, kSamplesTag), "samples",
                          [this, known] {
                            int64_t all = 0;
                            for (const std::string& text : told_) {
                              int64_t samples = 0;
                              std::memcpy(&samples, text.data(), sizeof samples);
                              all += samples;
                            }
                            known(all_ = all);
                          });
}

void SampleCount::wait() {
  if (telling_) ranks_.wait(telling_);
}

}  // namespace mox::internal
