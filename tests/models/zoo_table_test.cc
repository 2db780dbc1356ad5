// The table of docs/zoo.md is the one that the code gives.
#include <fmt/format.h>
#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include "models/zoo/zoo.h"
#include "runtime/base/file.h"
#include "tests/models/published_figures.h"

namespace mox {
namespace {

std::string grouped(int64_t number) {  // 25557032 -> "25,557,032"
  std::string digits = std::to_string(number);
  for (auto at = static_cast<int64_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<size_t>(at), ",");
  return digits;
}

// As published: whole if exact, else in millions.
std::string published(double number, double rounding) {
  if (number == 0) return "";
  return rounding == 0 ? grouped(static_cast<int64_t>(number)) : fmt::format("{:g} M", number / 1e6);
}

std::string_view words_of(Counted counted) {
  switch (counted) {
    case Counted::kTrainable:
      return "";
    case Counted::kAll:
      return " with moving averages";
    case Counted::kWithoutNormalisation:
      return " without normalisations";
  }
  return "";
}

std::string table() {
  std::string text =
      "| name | image | classes | parameters | moving averages | multiply-adds | published: parameters | "
      "published: multiply-adds | source |\n|---|---|---:|---:|---:|---:|---:|---:|---|\n";
  for (const std::string& name : model_names()) {
    const ModelMeta meta = get_model_meta(name);
    const PublishedFigure* figure = nullptr;
    for (const PublishedFigure& candidate : kPublishedFigures)
      if (candidate.name == name) figure = &candidate;
    text += fmt::format("| `{}` | {}×{}×{} | {} | {} | {} | {} | {}{} | {} | {} |\n", name, meta.channels,
                        meta.image_size, meta.image_size, meta.num_classes, grouped(meta.parameters),
                        grouped(meta.moving_averages), grouped(meta.multiply_adds),
                        published(figure->parameters, figure->parameters_rounding), words_of(figure->counted),
                        published(figure->multiply_adds, figure->multiply_adds_rounding), figure->source);
  }
  return text;
}

TEST(ZooTable, IsUpToDate) {
  const std::string generated = MOX_BINARY_DIR "/zoo_table.md";
  write_file_atomically(generated, table());
  EXPECT_THAT(read_file(MOX_SOURCE_DIR "/docs/zoo.md"), testing::HasSubstr("\n\n" + table() + "\n"))
      << "docs/zoo.md must hold the table that is in " << generated;
}

}  // namespace
}  // namespace mox
