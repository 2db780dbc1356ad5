// The table of networks in docs/zoo.md is the one that the code gives. ./dev docs sets MOX_WRITE_DOCS, which
// writes it instead of comparing it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <string_view>

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

// The page with the table in the place of the one that it has; empty if it has none.
std::string with_table(const std::string& page) {
  const size_t begin = page.find("\n\n| name | image |");
  if (begin == std::string::npos) return {};
  const size_t end = page.find("\n\n", begin + 2);
  if (end == std::string::npos) return {};
  return page.substr(0, begin + 2) + table() + page.substr(end + 1);
}

TEST(ZooTable, IsUpToDate) {
  const std::string path = MOX_SOURCE_DIR "/docs/zoo.md";
  const std::string expected = with_table(read_file(path));
  ASSERT_NE(expected, "") << path << " has no table that begins with '| name | image |'";
  if (std::getenv("MOX_WRITE_DOCS")) write_file_atomically(path, expected);
  EXPECT_EQ(read_file(path), expected) << "./dev docs writes it anew";
}

}  // namespace
}  // namespace mox
