// Numbers in text as C and JSON write them, whatever locale the program has set.
//
// Our own text is written and read by functions that know no locale (fmt, std::from_chars). Libraries that we
// read with are not all like that: nlohmann::json reads a fraction by strtod, which knows the locale's
// decimal sign; of one that takes several bytes, as in Persian, it would lose the fraction.
#pragma once

namespace mox {

// While alive, the calling thread reads and writes numbers as in the locale "C"; other threads and the
// program's own locale stay as they are.
class CNumbers {
 public:
  CNumbers();
  ~CNumbers();
  CNumbers(const CNumbers&) = delete;
  CNumbers& operator=(const CNumbers&) = delete;

 private:
  void* before_;  // a locale_t
};

}  // namespace mox
