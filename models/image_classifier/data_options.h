// The options data.* and augmentation.* of the pre-set job, and those of them that need more than to be read.
#pragma once

#include <moxing/moxing.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace image_classifier {

// More than any data set has; so many are what identifiers look like that are taken for labels.
constexpr int64_t kMostClasses = 1 << 20;

// Declares the options. Call before mox::init.
void define_data_flags();

// What follows throws ConfigError for a value that cannot be.
mox::data::CsvOptions csv_options();
double cache_gigabytes();
std::optional<mox::image::ColourJitter> colour_jitter();  // nothing: the recipe's
int64_t given_classes();                                  // 0: as the data say
int64_t label_offset();                                   // labels are int32, and so is what leads to them

struct OptionOfFormats {
  const char* name;
  std::vector<std::string> formats;  // that look at it
};

// Refuses those of the options that this data.format does not look at: who gives them expects something else.
// One that is switched off (0, false, none, error or empty) may stand.
void require_effect(const std::string& format, const std::vector<OptionOfFormats>& options);
// Of data.* and augmentation.*.
void require_effect(const std::string& format);

// Refuses augmentation.min_area for a recipe that does not crop and resize at random.
void require_area_effect(const mox::image::Augmentation& recipe, const std::string& name);

// The height and width that model.image_size asks for in this run; 0: those of the data.
int64_t given_image_size();

// Refuses what is no network of the zoo nor of a family that has a recipe: of any other name the recipe would
// be the last one's.
void require_recipe(const std::string& name);

}  // namespace image_classifier
