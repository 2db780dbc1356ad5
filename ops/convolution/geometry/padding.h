// How convolutions and pooling treat the borders of an image.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace mox {

// With an extent n of the image, a window of k (dilated: (k - 1) * dilation + 1) and stride s:
//  - kSame: ceil(n / s) positions; the padding that this takes is split evenly, an odd one goes to the end
//    (TensorFlow's rule, so it may be asymmetric);
//  - kValid: no padding: floor((n - k) / s) + 1 positions;
//  - of(...): that many rows and columns of padding on each side: floor((n + before + after - k) / s) + 1
//  positions.
class Padding {
 public:
  static const Padding kSame;
  static const Padding kValid;
  static constexpr Padding of(int64_t top, int64_t bottom, int64_t left, int64_t right) {
    return Padding("explicit", {top, bottom, left, right});
  }
  static constexpr Padding of(int64_t every_side) {
    return of(every_side, every_side, every_side, every_side);
  }

  constexpr std::string_view name() const { return name_; }                 // "same", "valid", "explicit"
  constexpr const std::array<int64_t, 4>& sizes() const { return sizes_; }  // of an explicit padding

 private:
  constexpr Padding(std::string_view name, std::array<int64_t, 4> sizes) : name_(name), sizes_(sizes) {}
  std::string_view name_;
  std::array<int64_t, 4> sizes_;
};

inline constexpr Padding Padding::kSame = Padding("same", {});
inline constexpr Padding Padding::kValid = Padding("valid", {});

}  // namespace mox
