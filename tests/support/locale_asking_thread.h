// A thread that asks for the decimal sign all the time, now in the locale "C", now in the program's, as
// others do that write numbers: localeconv has one answer for all threads of a process.
#pragma once

#include <locale.h>

#include <clocale>
#include <stop_token>
#include <thread>

namespace mox {

class LocaleAskingThread {
 public:
  LocaleAskingThread()
      : thread_([](const std::stop_token& stop) {
          const locale_t c = ::newlocale(LC_NUMERIC_MASK, "C", nullptr);
          while (!stop.stop_requested()) {
            std::localeconv();
            const locale_t programs = ::uselocale(c);
            std::localeconv();
            ::uselocale(programs);
          }
          ::freelocale(c);
        }) {}

 private:
  std::jthread thread_;
};

}  // namespace mox
