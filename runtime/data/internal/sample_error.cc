#include "runtime/data/internal/sample_error.h"

#include <fmt/format.h>

#include <stdexcept>
#include <typeinfo>

#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/data/internal/execution.h"

namespace mox::data::internal {
namespace {

// Only an exact match is rebuilt: a derived type would lose what it adds.
template <typename Type>
void rethrow_as(const std::exception& error, const std::string& text) {
  if (typeid(error) == typeid(Type)) throw Type(text);
}

template <typename... Types>
void rethrow_as_one_of(const std::exception& error, const std::string& text) {
  (rethrow_as<Types>(error, text), ...);
}

}  // namespace

void rethrow_with_sample(const std::string& stage, const Leaf& leaf) {
  const std::string place = fmt::format("{}, sample {} of pass {}", stage, leaf.index, leaf.epoch);
  try {
    throw;
  } catch (const Stopped&) {
    throw;
  } catch (const std::exception& error) {
    rethrow_as_one_of<InvalidArgument, ConfigError, NotFound, IoError, DataError, FailedPrecondition,
                      NumericError, Error, std::runtime_error, std::range_error, std::overflow_error,
                      std::underflow_error, std::logic_error, std::invalid_argument, std::domain_error,
                      std::length_error, std::out_of_range>(error,
                                                            fmt::format("{}: {}", place, error.what()));
    log_error(fmt::format("{}: {}", place, error.what()));
    throw;
  } catch (...) {
    log_error(fmt::format("{}: an exception of an unknown type", place));
    throw;
  }
}

}  // namespace mox::data::internal
