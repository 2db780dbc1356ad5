// Exceptions that nobody catches.
#pragma once

namespace mox::internal {

// From here on an exception that leaves main, or the making of a variable before main, is reported in one
// paragraph like one inside of mox::run, and ends the process (in a job all of it) with the status of that
// error. In place of the handler that std::set_terminate has.
void report_uncaught_exceptions();

}  // namespace mox::internal
