// Log lines of what others have written.
#include "runtime/base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mox {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(Log, ShowsWhatATerminalWouldObey) {
  testing::internal::CaptureStderr();
  log_warning("'\x1b[2Jdaisy.jpg\n12:00:00.000 info all is well' cannot be read");
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("'\\x1b[2Jdaisy.jpg\n  12:00:00.000 info all is well' cannot be read\n"),
                    Not(HasSubstr("\x1b[2J"))));
}

}  // namespace
}  // namespace mox
