// Files of about so many mebibytes, for what reads them to be measured; written piece by piece.
#pragma once

#include <cstdint>
#include <cstdio>

namespace bench {

// Rows of 1,024 float32.
void write_npy(std::FILE* file, int64_t mebibytes);

// An archive of one such array, "x".
void write_stored_npz(std::FILE* file, int64_t mebibytes);
void write_deflated_npz(std::FILE* file, int64_t mebibytes);

// Four numbers and a label of ten a line.
void write_csv(std::FILE* file, int64_t mebibytes);

// Columns of a table as people have them: numbers, words, dates, and notes in quotes.
void write_table(std::FILE* file, int64_t mebibytes);

}  // namespace bench
