// JPEG through libjpeg-turbo. Its errors come by longjmp: what runs between `setjmp` and a call of the
// library has nothing to destroy.
#include <fmt/format.h>

#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <vector>

// jpeglib.h needs stdio's types before it.
// clang-format off
#include <jpeglib.h>
#include <jerror.h>
// clang-format on

#include "moxing/image/internal/format_decoder.h"
#include "runtime/base/error.h"

namespace mox::image::internal {
namespace {

// Past this, a progressive file of a few kilobytes could keep the decoder busy for hours.
constexpr int kMostScans = 200;

// An image of several scans is decoded from all its coefficients, which the library holds at once, whatever
// the scale: for any file, up to this much beside its decoded size. Where they take more (six bytes a pixel
// if no colour is subsampled, eight of inks) the file must have a bit for eight pixels, as photographs have.
constexpr uint64_t kBesideDecodedSize = 16 << 20;
constexpr uint64_t kMostPixelsOfScans = uint64_t{1} << 26, kMostPixelsOfByte = 64;

struct ErrorManager {
  jpeg_error_mgr base;  // first: the library hands out a pointer to it
  std::jmp_buf jump;
  char text[JMSG_LENGTH_MAX];
};

[[noreturn]] void stop(j_common_ptr common) {
  auto* manager = reinterpret_cast<ErrorManager*>(common->err);
  (*manager->base.format_message)(common, manager->text);
  std::longjmp(manager->jump, 1);
}

// Warnings of the library that leave the pixels as they were meant.
bool harmless(int code) {
  switch (code) {
    case JWRN_EXTRANEOUS_DATA:
    case JWRN_JFIF_MAJOR:
    case JWRN_ADOBE_XFORM:
    case JWRN_TOO_MUCH_DATA:
      return true;
    default:
      return false;
  }
}

void on_message(j_common_ptr common, int level) {
  if (level < 0 && !harmless(common->err->msg_code)) stop(common);
}

void on_progress(j_common_ptr common) {
  if (reinterpret_cast<j_decompress_ptr>(common)->input_scan_number <= kMostScans) return;
  auto* manager = reinterpret_cast<ErrorManager*>(common->err);
  std::strcpy(manager->text, "it has more scans than any encoder writes");
  std::longjmp(manager->jump, 1);
}

// Inks are stored inverted, as Adobe does: 255 is none. Writers that leave out its marker do so too, and
// readers (Pillow among them) take them so.
void inks_to_pixels(const uint8_t* inks, int count, uint8_t* pixels) {
  for (int i = 0; i < count; ++i, inks += 4, pixels += kPixelBytes) {
    const int black = inks[3];
    for (int c = 0; c < 3; ++c) {
      const int ink = inks[c];
      pixels[c] = static_cast<uint8_t>((ink * black + 127) / 255);
    }
    pixels[3] = 0;
  }
}

class JpegDecoder : public FormatDecoder {
 public:
  JpegDecoder() {
    info_.err = jpeg_std_error(&errors_.base);
    errors_.base.error_exit = stop;
    errors_.base.emit_message = on_message;
    guarded([this] { jpeg_create_decompress(&info_); });
    jpeg_save_markers(&info_, JPEG_APP0 + 1, 0xFFFF);
    progress_.progress_monitor = on_progress;
    info_.progress = &progress_;
  }
  ~JpegDecoder() override { jpeg_destroy_decompress(&info_); }

  void open(std::span<const std::byte> content, const std::string& name,
            const DecodeLimits& limits) override {
    name_ = name;
    content_ = content;
    jpeg_abort_decompress(&info_);
    guarded([&] {
      jpeg_mem_src(&info_, reinterpret_cast<const unsigned char*>(content.data()), content.size());
      jpeg_read_header(&info_, TRUE);
    });
    require_size(info_.image_width, info_.image_height, limits, name);
    require_whole();
    require_room_for_scans();
    orientation_ = read_orientation();
    inks_ = info_.jpeg_color_space == JCS_CMYK || info_.jpeg_color_space == JCS_YCCK;
    info_.out_color_space = inks_ ? JCS_CMYK : JCS_EXT_RGBX;
    guarded([this] { jpeg_calc_output_dimensions(&info_); });
  }

  int width() const override { return info_.output_width; }
  int height() const override { return info_.output_height; }
  int orientation() const override { return orientation_; }

  int reduce(int denominator) override {
    info_.scale_num = 1;
    info_.scale_denom = static_cast<unsigned>(denominator);
    guarded([this] { jpeg_calc_output_dimensions(&info_); });
    return denominator;
  }

  void decode(const Box& box, RowSink sink) override {
    const int full_width = width();
    guarded([this] { jpeg_start_decompress(&info_); });
    // Smooth upsampling of the colours looks at their neighbours, one colour sample (at most four columns) on
    // each side: with them inside the columns asked for, the box has the pixels of a full decoding.
    // Where the luma is sampled four times as often, in either direction, libjpeg-turbo's columns of a part
    // are not always those of the whole: such images, which are rare, are decoded in full width.
    constexpr int kMargin = 4;
    const bool narrow = info_.max_h_samp_factor <= 2 && info_.max_v_samp_factor <= 2;
    const int left = std::max(0, box.x - kMargin);
    JDIMENSION begin = static_cast<JDIMENSION>(left);
    JDIMENSION columns = static_cast<JDIMENSION>(std::min(full_width, box.x + box.width + kMargin) - left);
    if (narrow && columns < static_cast<JDIMENSION>(full_width))
      guarded([&] { jpeg_crop_scanline(&info_, &begin, &columns); });
    else
      begin = 0;
    uint8_t* const row = row_beside_alignment(size_t{info_.output_width} * 4);
    if (inks_) pixels_.resize(static_cast<size_t>(box.width) * kPixelBytes);
    const size_t skipped = (static_cast<size_t>(box.x) - begin) * 4;
    guarded([&] {
      if (box.y > 0) jpeg_skip_scanlines(&info_, static_cast<JDIMENSION>(box.y));
    });
    for (int y = 0; y < box.height; ++y) {
      guarded([this, row] {
        JSAMPROW rows[] = {row};
        jpeg_read_scanlines(&info_, rows, 1);
      });
      uint8_t* pixels = row + skipped;
      if (inks_) {
        inks_to_pixels(pixels, box.width, pixels_.data());
        pixels = pixels_.data();
      }
      sink(y, pixels);
    }
    jpeg_abort_decompress(&info_);
  }

 private:
  // Runs calls of the library; its errors become exceptions.
  template <typename Calls>
  void guarded(Calls&& calls) {
    if (setjmp(errors_.jump) == 0) {  // NOLINT: how the library reports errors
      calls();
      return;
    }
    jpeg_abort_decompress(&info_);
    const size_t left = info_.src ? info_.src->bytes_in_buffer : 0;
    throw DataError(
        fmt::format("'{}', offset {}: this JPEG image is damaged or of a kind that is not supported: {}",
                    name_, content_.size() - std::min(left, content_.size()), errors_.text));
  }

  // Memory for a row that does not begin at a multiple of 16 bytes. Into one that does, the library's colour
  // conversion writes past the caches (non-temporal stores), and whoever reads the row next waits for main
  // memory: half of the time that a sample took.
  uint8_t* row_beside_alignment(size_t bytes) {
    constexpr size_t kVector = 64, kBeside = 8;
    row_.resize(bytes + kVector + kBeside);
    const auto address = reinterpret_cast<uintptr_t>(row_.data());
    return row_.data() + (kVector - address % kVector) % kVector + kBeside;
  }

  // What can be known of the rows that are not decoded.
  void require_whole() const {
    const auto* first = reinterpret_cast<const char*>(info_.src->next_input_byte);
    const std::string_view rest(first, info_.src->bytes_in_buffer);
    if (rest.rfind("\xff\xd9") == std::string_view::npos)
      throw DataError(fmt::format("'{}': this JPEG image is cut off: {} bytes, and no end marker", name_,
                                  content_.size()));
    // A block of 8 x 8 pixels takes at least one bit, unless arithmetic coding is used.
    const auto pixels = uint64_t{info_.image_width} * info_.image_height;
    if (!info_.arith_code && pixels / 512 > content_.size())
      throw DataError(fmt::format("'{}': the header claims {} x {} pixels, which {} bytes cannot hold", name_,
                                  info_.image_width, info_.image_height, content_.size()));
  }

  void require_room_for_scans() {
    if (!jpeg_has_multiple_scans(&info_)) return;
    constexpr uint64_t kBytesOfBlock = DCTSIZE2 * sizeof(JCOEF);
    const auto rounded = [](uint64_t count, int unit) { return (count + unit - 1) / unit * unit; };
    uint64_t bytes = 0;
    for (int i = 0; i < info_.num_components; ++i) {
      const jpeg_component_info& part = info_.comp_info[i];
      bytes += rounded(part.width_in_blocks, part.h_samp_factor) *
               rounded(part.height_in_blocks, part.v_samp_factor) * kBytesOfBlock;
    }
    const auto pixels = uint64_t{info_.image_width} * info_.image_height;
    if (bytes <= 3 * pixels + kBesideDecodedSize) return;
    if (pixels <= kMostPixelsOfScans && pixels / kMostPixelsOfByte <= content_.size()) return;
    throw DataError(fmt::format(
        "'{}': this JPEG image of {} x {} pixels has several scans (it is progressive), which take {} "
        "MB of memory to decode, out of {} bytes: at most {} pixels are read so, and {} for each byte. "
        "Make it one of one scan, for example with ImageMagick: mogrify -interlace none FILE",
        name_, info_.image_width, info_.image_height, bytes >> 20, content_.size(), kMostPixelsOfScans,
        kMostPixelsOfByte));
  }

  int read_orientation() const {
    constexpr char kExif[6] = {'E', 'x', 'i', 'f', 0, 0};
    for (const jpeg_marker_struct* marker = info_.marker_list; marker; marker = marker->next) {
      if (marker->marker != JPEG_APP0 + 1 || marker->data_length < sizeof kExif ||
          std::memcmp(marker->data, kExif, sizeof kExif) != 0)
        continue;
      return exif_orientation(
          std::as_bytes(std::span(marker->data, marker->data_length)).subspan(sizeof kExif));
    }
    return 1;
  }

  jpeg_decompress_struct info_{};
  ErrorManager errors_{};
  jpeg_progress_mgr progress_{};
  std::string name_;
  std::span<const std::byte> content_;
  int orientation_ = 1;
  bool inks_ = false;
  std::vector<uint8_t> row_, pixels_;
};

}  // namespace

std::unique_ptr<FormatDecoder> make_jpeg_decoder() { return std::make_unique<JpegDecoder>(); }

bool is_jpeg(std::span<const std::byte> content) {
  return content.size() >= 3 && content[0] == std::byte{0xff} && content[1] == std::byte{0xd8} &&
         content[2] == std::byte{0xff};
}

}  // namespace mox::image::internal
