// What a run was given and what it goes on from, or is given beside it, do not fit together: another
// optimizer than the checkpoint's, other data, a schedule in epochs of data without a size. The same again
// would be refused again.
#pragma once

#include "runtime/base/error.h"

namespace mox {

// Unlike another FailedPrecondition, which waiting may mend (a log_dir that another run holds), it ends a run
// with status 2 if no step has been done: what starts failed runs anew (--max-restarts) does not repeat it.
class Conflict : public FailedPrecondition {
 public:
  using FailedPrecondition::FailedPrecondition;
};

}  // namespace mox
