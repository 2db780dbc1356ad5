// The calls that a pickle of CIFAR makes an array by: they are known by their names, and none is carried out.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "moxing/formats/internal/pickle_stack.h"

namespace mox::data::internal {

class PickleCalls : protected PickleStack {
 protected:
  using PickleStack::PickleStack;

  // Throws DataError for every function but the known ones.
  void push_callable(std::string_view module, std::string_view name);
  // A function and a tuple of arguments become what it makes of them.
  void reduce();
  // The state of an array: (version, shape, dtype, is Fortran order, bytes); of a dtype: (version, byte
  // order, ...).
  void build();

 private:
  PickleValue made_by(Callable function, const std::vector<ValueId>& arguments);
  DtypeValue dtype_called(std::string_view code) const;
  PickleValue encoded(const std::vector<ValueId>& arguments);
  ArrayValue array_of(ValueId shape, ValueId dtype, bool is_fortran, ValueId bytes);
};

}  // namespace mox::data::internal
