#include "runtime/base/c_numbers.h"

#include <locale.h>

namespace mox {

CNumbers::CNumbers() {
  static const locale_t numbers_of_c = ::newlocale(LC_NUMERIC_MASK, "C", nullptr);
  before_ = ::uselocale(numbers_of_c);
}

CNumbers::~CNumbers() { ::uselocale(static_cast<locale_t>(before_)); }

}  // namespace mox
