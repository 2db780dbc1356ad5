#include "bench/files/large_files.h"

#include <fmt/format.h>
#include <moxing/moxing.h>
#include <zlib.h>

#include <array>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/file.h"

namespace bench {
namespace {

// An array that is written as it stands or deflated.
void write_npz(std::FILE* file, int64_t mebibytes, bool deflates) {
  const std::string name = "x.npy";
  const std::string header = mox::data::make_npy_header({mox::DType::kFloat32, {mebibytes * 256, 1024}});
  std::string piece(1 << 20, '\0');
  for (size_t i = 0; i < piece.size(); ++i) piece[i] = static_cast<char>((i * i) >> 7 & 0x1f);
  uint32_t checksum = 0;
  uint64_t packed = 0;
  z_stream stream{};
  deflateInit2(&stream, 1, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::vector<char> out(2 << 20);
  const auto add = [&](const std::string& bytes, bool is_last) {
    checksum = mox::crc32(std::as_bytes(std::span(bytes)), checksum);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream.avail_in = static_cast<uInt>(bytes.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    if (deflates) deflate(&stream, is_last ? Z_FINISH : Z_SYNC_FLUSH);
    const size_t count = deflates ? out.size() - stream.avail_out : bytes.size();
    packed += std::fwrite(deflates ? out.data() : bytes.data(), 1, count, file);
  };
  const auto number = [](std::string& to, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) to += static_cast<char>(value >> (8 * i) & 0xff);
  };
  const uint64_t size = header.size() + (static_cast<uint64_t>(mebibytes) << 20);
  const auto member = [&](std::string magic) {  // what the member's head and the directory say of it
    number(magic, 20, 2), number(magic, 0, 2), number(magic, deflates ? 8 : 0, 2), number(magic, 0, 4);
    number(magic, checksum, 4), number(magic, packed, 4), number(magic, size, 4);
    number(magic, name.size(), 2), number(magic, 0, 2);
    return magic;
  };
  std::string head = member("PK\3\4") + name;
  std::fwrite(head.data(), 1, head.size(), file);
  add(header, false);
  for (int64_t i = 0; i < mebibytes; ++i) add(piece, i + 1 == mebibytes);
  deflateEnd(&stream);
  std::string directory = "PK\1\2";
  number(directory, 20, 2);
  directory = member(directory);
  number(directory, 0, 14);
  directory += name;
  std::string end = "PK\5\6";
  number(end, 0, 4), number(end, 1, 2), number(end, 1, 2), number(end, directory.size(), 4);
  number(end, head.size() + packed, 4), number(end, 0, 2);
  directory += end;
  std::fwrite(directory.data(), 1, directory.size(), file);
}

}  // namespace

void write_npy(std::FILE* file, int64_t mebibytes) {
  const std::string header = mox::data::make_npy_header({mox::DType::kFloat32, {mebibytes * 256, 1024}});
  std::fwrite(header.data(), 1, header.size(), file);
  const std::vector<char> piece(1 << 20, 1);
  for (int64_t i = 0; i < mebibytes; ++i) std::fwrite(piece.data(), 1, piece.size(), file);
}

void write_stored_npz(std::FILE* file, int64_t mebibytes) { write_npz(file, mebibytes, false); }

void write_deflated_npz(std::FILE* file, int64_t mebibytes) { write_npz(file, mebibytes, true); }

void write_csv(std::FILE* file, int64_t mebibytes) {
  std::string piece;
  for (int i = 0; piece.size() < (1 << 20); ++i)
    piece += fmt::format("{},{:.5f},{:.4f},-{:.6f},{}\n", i % 977, i * 0.37, i * 1.7, i * 1e-4, i % 10);
  for (int64_t i = 0; i < mebibytes; ++i) std::fwrite(piece.data(), 1, piece.size(), file);
}

void write_table(std::FILE* file, int64_t mebibytes) {
  std::fputs("id,age,income,city,joined,note\n", file);
  const std::array<const char*, 4> cities = {"Oslo", "Lima", "\"Paris, France\"", "Nairobi"};
  std::string piece;
  for (int i = 0; piece.size() < (1 << 20); ++i)
    piece +=
        fmt::format("{},{},{:.2f},{},2024-{:02}-{:02},{}\n", i, 18 + i % 70, i * 1.37, cities[i % 4],
                    1 + i % 12, 1 + i % 28, i % 5 == 0 ? "\"as he said: \"\"no\"\"\nand left\"" : "none");
  for (int64_t i = 0; i < mebibytes; ++i) std::fwrite(piece.data(), 1, piece.size(), file);
}

}  // namespace bench
