// Images for the tests, encoded by the libraries themselves.
#pragma once

#include <png.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <vector>

// jpeglib.h needs stdio's types before it.
// clang-format off
#include <jpeglib.h>
// clang-format on

#include "moxing/image/bitmap.h"
#include "runtime/base/random.h"

namespace mox::image {

// Waves, edges and some noise.
inline Bitmap picture(int width, int height, uint64_t seed = 1) {
  Bitmap bitmap(width, height);
  const RandomStream random(seed, 0);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < 3; ++c) {
        const double wave = 90 * std::sin(0.11 * x * (c + 1) + 0.07 * y) + ((x / 9 + y / 13) % 2 ? 40 : -40);
        const double noise = 20 * random.uniform(static_cast<uint64_t>((int64_t{y} * width + x) * 3 + c));
        bitmap.row(y)[x * kPixelBytes + c] = static_cast<uint8_t>(std::clamp(118 + wave + noise, 0.0, 255.0));
      }
  return bitmap;
}

struct JpegOptions {
  int quality = 92;
  int horizontal_sampling = 2, vertical_sampling = 2;  // of the luma
  bool progressive = false;
  bool grey = false;
  bool cmyk = false;
  int restart_interval = 0;
  int orientation = 0;  // 0: no EXIF block
};

inline std::string encode_jpeg(const Bitmap& bitmap, JpegOptions options = {}) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &memory, &size);
  info.image_width = static_cast<JDIMENSION>(bitmap.width);
  info.image_height = static_cast<JDIMENSION>(bitmap.height);
  info.input_components = options.grey ? 1 : 4;
  info.in_color_space = options.grey ? JCS_GRAYSCALE : options.cmyk ? JCS_CMYK : JCS_EXT_RGBX;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, options.quality, TRUE);
  info.comp_info[0].h_samp_factor = options.grey ? 1 : options.horizontal_sampling;
  info.comp_info[0].v_samp_factor = options.grey ? 1 : options.vertical_sampling;
  info.restart_interval = static_cast<unsigned>(options.restart_interval);
  if (options.progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  if (options.orientation != 0) {
    std::string exif("Exif\0\0MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\0\0\0\0\0\0\0", 32);
    exif[25] = static_cast<char>(options.orientation);
    jpeg_write_marker(&info, JPEG_APP0 + 1, reinterpret_cast<const JOCTET*>(exif.data()),
                      static_cast<unsigned>(exif.size()));
  }
  std::string row(static_cast<size_t>(bitmap.width) * 4, '\0');
  for (int y = 0; y < bitmap.height; ++y) {
    std::memcpy(row.data(), bitmap.row(y), row.size());
    for (int x = 0; options.grey && x < bitmap.width; ++x)
      row[x] = static_cast<char>(bitmap.row(y)[x * kPixelBytes + 1]);
    JSAMPROW pointer = reinterpret_cast<JSAMPROW>(row.data());
    jpeg_write_scanlines(&info, &pointer, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  std::string result(reinterpret_cast<char*>(memory), size);
  std::free(memory);
  return result;
}

struct PngOptions {
  int color_type = PNG_COLOR_TYPE_RGB;  // or GRAY, RGB_ALPHA
  bool interlaced = false;
};

inline std::string encode_png(const Bitmap& bitmap, PngOptions options = {}) {
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  std::string result;
  png_set_write_fn(
      png, &result,
      [](png_structp writer, png_bytep bytes, png_size_t count) {
        static_cast<std::string*>(png_get_io_ptr(writer))->append(reinterpret_cast<char*>(bytes), count);
      },
      nullptr);
  png_set_IHDR(png, info, static_cast<png_uint_32>(bitmap.width), static_cast<png_uint_32>(bitmap.height), 8,
               options.color_type, options.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png, info);
  const int channels = png_get_channels(png, info);
  std::string pixels(static_cast<size_t>(bitmap.width * bitmap.height * channels), '\0');
  std::vector<png_bytep> rows;
  for (int y = 0; y < bitmap.height; ++y) {
    auto* row = reinterpret_cast<png_bytep>(pixels.data()) + y * bitmap.width * channels;
    for (int x = 0; x < bitmap.width; ++x)
      for (int c = 0; c < channels; ++c)
        row[x * channels + c] = c == 3 ? 128 : bitmap.row(y)[x * kPixelBytes + (channels == 1 ? 1 : c)];
    rows.push_back(row);
  }
  png_write_image(png, rows.data());
  png_write_end(png, nullptr);
  png_destroy_write_struct(&png, &info);
  return result;
}

// Red, green and blue of a pixel.
inline std::string colour(const Bitmap& bitmap, int x, int y) {
  return {reinterpret_cast<const char*>(bitmap.row(y)) + x * kPixelBytes, 3};
}

}  // namespace mox::image
