#include "moxing/engine/session/run.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "moxing/console/broken_pipe.h"
#include "moxing/console/nowhere_to_print.h"
#include "moxing/console/stop_signal.h"
#include "moxing/engine/session/internal/prediction.h"
#include "moxing/engine/session/internal/training/training.h"
#include "moxing/file/jobs/run_upload.h"
#include "moxing/job/facts.h"
#include "runtime/base/error.h"
#include "runtime/job/agreement.h"
#include "runtime/job/job.h"
#include "runtime/refusals/out_of_memory.h"
#include "runtime/tensor/refused_memory.h"
#include "runtime/text/printable.h"

namespace mox {

namespace {

// What std::thread throws where the system refuses one says neither what was refused nor what to do.
std::string refused_or_foreign(const std::system_error& error) {
  const bool is_of_a_file = dynamic_cast<const std::filesystem::filesystem_error*>(&error) != nullptr;
  if (!is_of_a_file && error.code() == std::errc::resource_unavailable_try_again)
    return fmt::format(
        "the system has refused this process a thread ({}): raise the limits on processes and memory (ulimit "
        "-u, ulimit -v, the control group's pids.max), or set lower values of threads, num_devices and "
        "data_threads",
        error.what());
  return fmt::format("an exception that is not one of moxing's left the program's own code: {}",
                     error.what());
}

// Not while data, a model or a batch were made, nor in a hook: those are named where they are called.
std::string out_of_memory_between_steps(std::string_view asked) {
  return fmt::format(
      "out of memory between the steps of the run: {}{}. What a run takes is decided by batch_size, "
      "num_devices, data_memory_mb and, of the image classifier, data.cache; raise the limit (ulimit -v, "
      "the control group's), or lower one of these",
      asked, internal::memory_held());
}

// What ranks compare before they do anything else together: what that is depends on it.
internal::RunSettings agreed_settings(const RunSpec& spec) {
  internal::note_run_begins();
  internal::require_agreement(internal::job(), internal::facts_of_build());
  internal::require_agreement(internal::job(), internal::facts_of_compute_library());
  internal::RunSettings settings = internal::resolve_settings(spec);
  internal::set_stall_limits(settings.distribution.stall_warning_s, settings.distribution.stall_abort_s);
  internal::require_agreement(internal::job(), internal::facts_of_configuration());
  return settings;
}

}  // namespace

RunResult run_or_throw(const RunSpec& spec) {
  const internal::RunSettings settings = agreed_settings(spec);
  // Rank 0 shows what all ranks know.
  const internal::NowhereToPrint nowhere(internal::job().rank() != 0);
  Console console(nowhere.or_else(1), nowhere.or_else(2), internal::job().size() == 1);
  if (settings.run_mode == ModeKeys::TRAIN) {
    const internal::SurviveBrokenPipe survive;
    // To the end of the upload, too.
    const internal::StopSignal signal(internal::job().size() > 1);
    // Made before the training and finished after it: what a training writes at its end is uploaded, too.
    // Until then nobody else may use the directory.
    std::shared_ptr<internal::RunLock> lock;
    std::optional<file::RunUpload> upload;
    if (!settings.places.remote_log_dir.empty() && !settings.print_plan && internal::job().rank() == 0)
      upload.emplace(settings.places.log_dir, settings.places.remote_log_dir);
    RunResult result = internal::run_training(spec, settings, console, signal, &lock);
    if (upload) {
      signal.let_interrupts_end();  // all of the run is on this machine
      upload->finish();
    }
    return result;
  }
  RunResult result = settings.run_mode == ModeKeys::EVAL ? internal::run_evaluation(spec, settings, console)
                                                         : internal::run_prediction(spec, settings, console);
  // A training that cannot print has still been saved; of these the output is all there is.
  if (console.output_error() != 0)
    throw IoError(fmt::format("the results could not be written to standard output: {}",
                              std::strerror(console.output_error())));
  return result;
}

int run(const RunSpec& spec) {
  std::string message;
  int status = internal::kJobFailed;
  try {
    return run_or_throw(spec).interrupted ? kExitInterrupted : 0;
  } catch (const internal::RefusedMemory& refused) {
    message = out_of_memory_between_steps(fmt::format("{}; ", refused.what()));
  } catch (const Error& error) {
    message = error.what();
    status = internal::exit_status_of(error);
  } catch (const std::bad_alloc&) {
    message = out_of_memory_between_steps("");
  } catch (const std::system_error& error) {
    message = refused_or_foreign(error);
  } catch (const std::exception& error) {
    message =
        fmt::format("an exception that is not one of moxing's left the program's own code: {}", error.what());
  } catch (...) {
    message = "something that is no std::exception was thrown by the program's own code";
  }
  std::fflush(stdout);
  if (internal::job().size() > 1) internal::fail_job(message, status);
  std::fputs(fmt::format("error: {}\n", printable_message(message)).c_str(), stderr);
  return status;
}

}  // namespace mox
