// Loaded before a test program: sets the process's locale as toolkits do (setlocale, and C++'s global one),
// to one that writes 1234.5 as 1.234,5 and has other letters for what is small and large.
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <locale>

namespace {

struct DecimalComma : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

struct SetLocale {
  SetLocale() {
    const char* name = std::getenv("MOX_TEST_LOCALE");
    if (!name) return;
    // A run without the locale would find nothing.
    if (!std::setlocale(LC_ALL, name) || std::strcmp(std::localeconv()->decimal_point, ",") != 0) {
      std::fprintf(stderr, "there is no locale '%s' with a decimal comma\n", name);
      std::_Exit(1);
    }
    std::locale::global(std::locale(std::locale(name), new DecimalComma));
    std::setlocale(LC_MESSAGES, "C");  // tests look for the system's words
  }
} set_locale;

}  // namespace
