// A descriptor that takes everything and shows nothing, for the ranks of a job that are not to be heard.
#pragma once

#include <fcntl.h>
#include <unistd.h>

namespace mox::internal {

class NowhereToPrint {
 public:
  explicit NowhereToPrint(bool wanted)
      : descriptor_(wanted ? ::open("/dev/null", O_WRONLY | O_CLOEXEC) : -1) {}
  ~NowhereToPrint() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  NowhereToPrint(const NowhereToPrint&) = delete;
  NowhereToPrint& operator=(const NowhereToPrint&) = delete;

  // This one, if it is wanted, else `descriptor`.
  int or_else(int descriptor) const { return descriptor_ >= 0 ? descriptor_ : descriptor; }

 private:
  int descriptor_;
};

}  // namespace mox::internal
