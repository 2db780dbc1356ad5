#include "moxing/image/decode.h"

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "tests/moxing/image/images.h"
#include "tests/support/temporary_directory.h"

namespace mox::image {
namespace {

using testing::AllOf;
using testing::HasSubstr;

int largest_difference(const Bitmap& a, const Bitmap& b) {
  EXPECT_EQ(a.width, b.width);
  EXPECT_EQ(a.height, b.height);
  int largest = 0;
  for (int y = 0; y < a.height; ++y)
    for (int x = 0; x < a.width; ++x)
      for (int c = 0; c < 3; ++c)
        largest = std::max(largest, std::abs(a.row(y)[x * kPixelBytes + c] - b.row(y)[x * kPixelBytes + c]));
  return largest;
}

std::string message(const std::string& content) {
  try {
    decode(as_bytes(content), "dir/x.jpg");
  } catch (const DataError& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

// A part, pixel by pixel against the whole.
void expect_part_equals_whole(const std::string& encoded, int denominator, const Box& box) {
  Decoder decoder;
  decoder.open(as_bytes(encoded), "x");
  if (denominator > 1) decoder.reduce(denominator);
  Bitmap whole(decoder.width(), decoder.height());
  decoder.decode({0, 0, whole.width, whole.height},
                 [&](int y, const uint8_t* row) { std::memcpy(whole.row(y), row, whole.stride()); });
  decoder.open(as_bytes(encoded), "x");
  if (denominator > 1) decoder.reduce(denominator);
  int rows = 0;
  decoder.decode(box, [&](int y, const uint8_t* row) {
    ASSERT_EQ(y, rows++);
    for (int x = 0; x < box.width; ++x)
      for (int c = 0; c < 3; ++c)
        ASSERT_EQ(row[x * kPixelBytes + c], whole.row(box.y + y)[(box.x + x) * kPixelBytes + c])
            << "x " << x << " of " << box.width << ", y " << y << " of " << box.height << ", channel " << c;
  });
  EXPECT_EQ(rows, box.height);
}

// How the stored image must look so that a viewer who follows the orientation sees the upright one.
Bitmap stored_as(const Bitmap& upright, int orientation) {
  using Place = std::pair<int, int>;
  const int right = upright.width - 1, bottom = upright.height - 1;
  const std::function<Place(int, int)> stored_to_upright[] = {[=](int x, int y) {
                                                                return Place{x, y};
                                                              },
                                                              [=](int x, int y) {
                                                                return Place{right - x, y};
                                                              },
                                                              [=](int x, int y) {
                                                                return Place{right - x, bottom - y};
                                                              },
                                                              [=](int x, int y) {
                                                                return Place{x, bottom - y};
                                                              },
                                                              [=](int x, int y) {
                                                                return Place{y, x};
                                                              },
                                                              [=](int x, int y) {
                                                                return Place{right - y, x};
                                                              },
                                                              [=](int x, int y) {
                                                                return Place{right - y, bottom - x};
                                                              },
                                                              [=](int x, int y) {
                                                                return Place{y, bottom - x};
                                                              }};
  Bitmap stored =
      orientation < 5 ? Bitmap(upright.width, upright.height) : Bitmap(upright.height, upright.width);
  for (int y = 0; y < stored.height; ++y)
    for (int x = 0; x < stored.width; ++x) {
      const auto [from_x, from_y] = stored_to_upright[orientation - 1](x, y);
      std::memcpy(stored.row(y) + x * kPixelBytes, upright.row(from_y) + from_x * kPixelBytes, kPixelBytes);
    }
  return stored;
}

std::string tiff_of(int orientation, bool big_endian) {
  std::string tiff =
      big_endian ? std::string("MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\0\0\0\0\0\0\0", 26)
                 : std::string("II\x2a\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\0\0\0\0\0\0\0\0", 26);
  tiff[big_endian ? 19 : 18] = static_cast<char>(orientation);
  return tiff;
}

std::string four_bytes(uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift);
  return bytes;
}

// Puts a chunk before the first one called `next`.
std::string with_chunk(std::string png, const std::string& type, const std::string& data, const char* next) {
  const std::string typed = type + data;
  const std::string chunk =
      four_bytes(static_cast<uint32_t>(data.size())) + typed + four_bytes(crc32(as_bytes(typed)));
  return png.insert(png.find(next) - 4, chunk);
}

TEST(DecodeJpeg, IsCloseToWhatWasEncoded) {
  Bitmap smooth(50, 40);
  for (int y = 0; y < 40; ++y)
    for (int x = 0; x < 50; ++x)
      for (int c = 0; c < 3; ++c)
        smooth.row(y)[x * kPixelBytes + c] = static_cast<uint8_t>(2 * x + 3 * y + 20 * c);
  EXPECT_LE(largest_difference(decode(as_bytes(encode_jpeg(smooth, {.quality = 98})), "x"), smooth), 6);
  EXPECT_LE(largest_difference(
                decode(as_bytes(encode_jpeg(smooth, {.quality = 98, .progressive = true})), "x"), smooth),
            6);
}

TEST(DecodeJpeg, GivesAPartBitForBitAsInTheWhole) {
  const Bitmap bitmap = picture(211, 147);
  const RandomStream random(3, 0);
  uint64_t draw = 0;
  const auto below = [&](int bound) {
    return static_cast<int>(random.below(draw++, static_cast<uint64_t>(bound)));
  };
  for (auto [horizontal, vertical] :
       {std::pair{1, 1}, {2, 1}, {2, 2}, {1, 2}, {4, 1}, {4, 2}, {2, 4}, {1, 4}})
    for (bool progressive : {false, true})
      for (int restart : {0, 3})
        for (int denominator : {1, 2, 4, 8}) {
          const std::string encoded = encode_jpeg(bitmap, {.horizontal_sampling = horizontal,
                                                           .vertical_sampling = vertical,
                                                           .progressive = progressive,
                                                           .restart_interval = restart});
          SCOPED_TRACE(testing::Message()
                       << horizontal << "x" << vertical << (progressive ? " progressive" : "") << " restart "
                       << restart << " reduced " << denominator);
          const int width = (211 + denominator - 1) / denominator,
                    height = (147 + denominator - 1) / denominator;
          for (int i = 0; i < 40; ++i) {
            const int x = below(width), y = below(height);
            const Box box{x, y, 1 + below(width - x), 1 + below(height - y)};
            SCOPED_TRACE(testing::Message()
                         << box.x << " " << box.y << " " << box.width << " " << box.height);
            expect_part_equals_whole(encoded, denominator, box);
            if (testing::Test::HasFatalFailure()) return;
          }
        }
}

TEST(DecodeJpeg, TurnsImagesUpright) {
  const Bitmap upright = picture(40, 24);
  for (int orientation = 1; orientation <= 8; ++orientation) {
    SCOPED_TRACE(orientation);
    const std::string encoded = encode_jpeg(
        stored_as(upright, orientation),
        {.quality = 100, .horizontal_sampling = 1, .vertical_sampling = 1, .orientation = orientation});
    EXPECT_LE(largest_difference(decode(as_bytes(encoded), "x"), upright), 4);
    expect_part_equals_whole(encoded, 1, {5, 3, 20, 15});
  }
}

TEST(DecodeJpeg, ReadsGreyAndInks) {
  const Bitmap bitmap = picture(33, 20);
  const Bitmap grey = decode(as_bytes(encode_jpeg(bitmap, {.quality = 100, .grey = true})), "x");
  EXPECT_NEAR(grey.row(7)[9 * kPixelBytes], bitmap.row(7)[9 * kPixelBytes + 1], 3);
  EXPECT_EQ(grey.row(7)[9 * kPixelBytes], grey.row(7)[9 * kPixelBytes + 2]);

  Bitmap inks(16, 16);  // as libjpeg writes them: Adobe's marker, inverted
  for (size_t i = 0; i < inks.pixels.size(); i += 4) {
    inks.pixels[i] = 200;
    inks.pixels[i + 1] = 100;
    inks.pixels[i + 2] = 50;
    inks.pixels[i + 3] = 128;
  }
  const Bitmap mixed =
      decode(as_bytes(encode_jpeg(
                 inks, {.quality = 100, .horizontal_sampling = 1, .vertical_sampling = 1, .cmyk = true})),
             "x");
  EXPECT_NEAR(mixed.row(3)[3 * kPixelBytes], 200 * 128 / 255.0, 3);
  EXPECT_NEAR(mixed.row(3)[3 * kPixelBytes + 1], 100 * 128 / 255.0, 3);
  EXPECT_NEAR(mixed.row(3)[3 * kPixelBytes + 2], 50 * 128 / 255.0, 3);
}

TEST(DecodeJpeg, RefusesEveryTruncation) {
  const std::string good = encode_jpeg(picture(64, 48));
  for (size_t length = 0; length < good.size(); length += 7)
    EXPECT_THAT(message(good.substr(0, length)), HasSubstr("dir/x.jpg")) << length;
  EXPECT_THAT(message(good.substr(0, good.size() / 2)), HasSubstr("cut off"));
}

TEST(DecodeJpeg, TellsATruncatedFileEvenIfThePartIsThere) {
  const std::string good = encode_jpeg(picture(64, 480)).substr(0, 2000);
  Decoder decoder;
  EXPECT_THROW(decoder.open(as_bytes(good), "x"), DataError);
}

TEST(DecodeJpeg, DoesNotCrashOnFlippedBits) {
  for (bool progressive : {false, true}) {
    const std::string good = encode_jpeg(picture(48, 40), {.progressive = progressive});
    int refused = 0;
    for (size_t i = 0; i < good.size(); ++i) {
      std::string damaged = good;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << (i % 8)));
      try {
        decode(as_bytes(damaged), "x");
      } catch (const DataError&) {
        ++refused;
      }
    }
    EXPECT_GT(refused, 100);
  }
}

TEST(DecodeJpeg, RefusesAHeaderThatClaimsTooMuch) {
  std::string huge = encode_jpeg(picture(16, 16));
  const size_t frame = huge.find("\xff\xc0");
  ASSERT_NE(frame, std::string::npos);
  huge.replace(frame + 5, 4, "\xff\xff\xff\xff");
  EXPECT_THAT(message(huge), HasSubstr("Maximum supported image dimension"));
  huge.replace(frame + 5, 4, "\xf0\xf0\xf0\xf0");
  EXPECT_THAT(message(huge), AllOf(HasSubstr("61680 x 61680"), HasSubstr("limit")));
  huge.replace(frame + 5, 4, std::string("\x20\0\x20\0", 4));
  EXPECT_THAT(message(huge), AllOf(HasSubstr("8192 x 8192"), HasSubstr("cannot hold")));
}

// All coefficients of a progressive image are held at once, six bytes a pixel where no colour is subsampled.
TEST(DecodeJpeg, RefusesSeveralScansThatWouldTakeMuchMoreThanTheImage) {
  // An image that claims another size, with `size` bytes.
  const auto claiming = [](JpegOptions options, int width, int height, size_t size) {
    options.progressive = true;
    std::string text = encode_jpeg(picture(16, 16), options);
    const size_t frame = text.find("\xff\xc2");
    const auto two_bytes = [](int value) {
      return std::string{static_cast<char>(value >> 8), static_cast<char>(value)};
    };
    text.replace(frame + 5, 4, two_bytes(height) + two_bytes(width));
    if (text.size() < size) text.insert(text.size() - 2, size - text.size(), '\0');
    return text;
  };
  const auto opened = [](const std::string& text) {
    Decoder decoder;
    decoder.open(as_bytes(text), "x");
    return decoder.width();
  };
  const JpegOptions full{.horizontal_sampling = 1, .vertical_sampling = 1}, subsampled{};
  const size_t bit_for_64 = 4096 * 2048 / 512, bit_for_8 = 4096 * 2048 / 64;
  EXPECT_THAT(message(claiming(full, 4096, 2048, bit_for_64)),
              AllOf(HasSubstr("4096 x 2048 pixels has several scans"), HasSubstr("take 48 MB"),
                    HasSubstr("-interlace none")));
  EXPECT_EQ(opened(claiming(full, 4096, 2048, bit_for_8)), 4096);
  EXPECT_EQ(opened(claiming(full, 2048, 2048, bit_for_64 / 2)), 2048);  // beside its decoded size: 12 MB
  EXPECT_EQ(opened(claiming(subsampled, 4096, 2048, bit_for_64)), 4096);
  EXPECT_EQ(opened(claiming(full, 8192, 8192, 1 << 20)), 8192);
  EXPECT_THAT(message(claiming(full, 8200, 8192, 2 << 20)), HasSubstr("at most 67108864 pixels"));
  EXPECT_EQ(opened(claiming(subsampled, 16000, 8192, 2 << 20)), 16000);
}

TEST(Decode, RefusesWhatIsNoImage) {
  EXPECT_THAT(message(""), HasSubstr("0 bytes"));
  EXPECT_THAT(message("This is a text, whatever it is called."), HasSubstr("no JPEG or PNG image"));
  EXPECT_FALSE(is_image(as_bytes(std::string("GIF89a"))));
  EXPECT_THAT(message("GIF89a"), HasSubstr("it is GIF; convert it, for example with ImageMagick: mogrify "
                                           "-auto-orient -format png FILE"));
}

TEST(DecodePng, GivesWhatWasEncoded) {
  const Bitmap bitmap = picture(37, 21);
  for (bool interlaced : {false, true}) {
    const std::string rgb = encode_png(bitmap, {.color_type = PNG_COLOR_TYPE_RGB, .interlaced = interlaced});
    EXPECT_EQ(largest_difference(decode(as_bytes(rgb), "x"), bitmap), 0);
    expect_part_equals_whole(rgb, 1, {5, 3, 20, 11});
    const std::string alpha =
        encode_png(bitmap, {.color_type = PNG_COLOR_TYPE_RGB_ALPHA, .interlaced = interlaced});
    EXPECT_EQ(largest_difference(decode(as_bytes(alpha), "x"), bitmap), 0);
    const Bitmap grey = decode(
        as_bytes(encode_png(bitmap, {.color_type = PNG_COLOR_TYPE_GRAY, .interlaced = interlaced})), "x");
    EXPECT_EQ(grey.row(4)[5 * kPixelBytes], bitmap.row(4)[5 * kPixelBytes + 1]);
    EXPECT_EQ(grey.row(4)[5 * kPixelBytes + 2], bitmap.row(4)[5 * kPixelBytes + 1]);
  }
}

// Tools that change a file put the EXIF block behind the pixels, ImageMagick among them.
TEST(DecodePng, TurnsImagesUprightWhereverTheirExifIs) {
  const Bitmap upright = picture(40, 24);
  for (int orientation = 1; orientation <= 8; ++orientation)
    for (bool big_endian : {false, true})
      for (bool interlaced : {false, true})
        for (const char* next : {"IDAT", "IEND"}) {
          SCOPED_TRACE(testing::Message() << orientation << (big_endian ? " MM" : " II")
                                          << (interlaced ? " interlaced" : "") << " before " << next);
          const std::string encoded =
              with_chunk(encode_png(stored_as(upright, orientation), {.interlaced = interlaced}), "eXIf",
                         tiff_of(orientation, big_endian), next);
          EXPECT_EQ(largest_difference(decode(as_bytes(encoded), "x"), upright), 0);
          expect_part_equals_whole(encoded, 1, {5, 3, 20, 15});
        }
}

TEST(DecodePng, TakesTheFirstExifThatIsWholeAndBelongsToIt) {
  const Bitmap bitmap = picture(40, 24);
  const std::string plain = encode_png(bitmap), turned = tiff_of(6, true);
  const auto width_of = [](const std::string& content) {
    Decoder decoder;
    decoder.open(as_bytes(content), "x");
    return decoder.width();
  };
  const std::string good = with_chunk(plain, "eXIf", turned, "IEND");
  EXPECT_EQ(width_of(good), 24);
  EXPECT_EQ(width_of(with_chunk(good, "tEXt", std::string("Comment\0eXIf", 12), "eXIf")), 24);
  EXPECT_EQ(width_of(with_chunk(good, "eXIf", tiff_of(1, true), "eXIf")), 40);
  EXPECT_EQ(width_of(plain + with_chunk(plain, "eXIf", turned, "IEND").substr(8)), 40);
  EXPECT_EQ(width_of(with_chunk(plain, "eXIf", "", "IEND")), 40);
  std::string damaged = good;
  damaged[damaged.find("eXIf") + 4 + turned.size()] ^= 1;  // its checksum
  EXPECT_EQ(width_of(damaged), 40);
  EXPECT_EQ(width_of(with_chunk(damaged, "eXIf", turned, "IEND")), 24);
}

// What follows the pixels is read for the orientation alone, and may end anywhere or claim any length.
TEST(DecodePng, TakesNoOrientationFromChunksThatAreCutOff) {
  const Bitmap bitmap = picture(40, 24);
  const std::string good = with_chunk(encode_png(bitmap), "eXIf", tiff_of(6, true), "IEND");
  const size_t chunk = good.find("eXIf") - 4, end = good.find("IEND") - 4;
  for (size_t length = chunk; length < end; ++length) {
    // A copy of its own, behind which a sanitizer finds any read.
    const std::string cut = good.substr(0, length) + "IEND";
    const std::vector<char> content(cut.begin(), cut.end());
    EXPECT_EQ(largest_difference(decode(std::as_bytes(std::span(content)), "x"), bitmap), 0) << length;
  }
  for (const uint32_t length : {27U, 38U, 39U, 0x7fffffffU, 0xfffffff4U, 0xffffffffU}) {
    std::string claiming = good;
    claiming.replace(chunk, 4, four_bytes(length));
    EXPECT_EQ(largest_difference(decode(as_bytes(claiming), "x"), bitmap), 0) << length;
  }
}

TEST(DecodePng, RefusesDamage) {
  const std::string good = encode_png(picture(37, 21));
  for (size_t length = 8; length < good.size() - 12; length += 5)
    EXPECT_THAT(message(good.substr(0, length)), HasSubstr("PNG")) << length;
  std::string huge = good;
  huge.replace(16, 8, std::string("\0\1\0\0\0\1\0\0", 8));
  EXPECT_THAT(message(huge), HasSubstr("PNG"));  // its checksum is wrong, too
  int refused = 0;
  for (size_t i = 8; i < good.size(); ++i) {
    std::string damaged = good;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x20);
    try {
      decode(as_bytes(damaged), "x");
    } catch (const DataError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, static_cast<int>(good.size()) * 9 / 10);
}

}  // namespace
}  // namespace mox::image
