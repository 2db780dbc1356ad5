// Cells that say the same in other letters: numbers as people write them, words that differ in case or
// spaces or look the same.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "moxing/tabular/internal/word_counts.h"

namespace mox::internal {

// A number that parse_number does not take, because it is written for people: "1,342.0",
// "12.3%", "$5", "3,5".
struct DisguisedNumber {
  std::string plain;  // "1342.0"
  std::string why;    // "separators between thousands"
};
std::optional<DisguisedNumber> disguised_number(std::string_view cell, char decimal);

// Whether a number is written as an identifier is: whole digits of which the first is a 0 that says nothing,
// as in postal codes and telephone numbers.
bool has_leading_zeros(std::string_view number);

// From 2^53 on, where not every whole number is a float64: the digits of a number, the same for each spelling
// of it and in the order of the magnitudes. "" below, where equal numbers of float64 are equal.
std::string exact_digits(std::string_view number, char decimal);

// Of words that are all numbers: one spelling for each number, the most frequent (of equally frequent ones
// the shortest), in ascending order. `other` gets the spellings that are left out.
std::vector<std::string> number_words(const WordCounts& words, char decimal, std::vector<std::string>* other);

// Two words that a person would take for one, as spelled_out has them, and why: "differ only in case or
// spaces", "look the same", "are equal numbers". Nothing if there are none.
struct SimilarWords {
  std::string first, second, why;
  size_t more = 0;  // further ones of the kind
};
std::optional<SimilarWords> similar_words(const WordCounts& words, char decimal);

}  // namespace mox::internal
