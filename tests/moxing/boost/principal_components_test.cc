#include "moxing/boost/principal_components.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "moxing/boost/basis_file.h"
#include "runtime/base/error.h"
#include "tests/moxing/boost/boost_samples.h"
#include "tests/runtime/comm/thread_ranks.h"
#include "tests/support/temporary_directory.h"

namespace mox::boost {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const Workers kAlone = workers_of(Team(1)), kThreeThreads = workers_of(Team(3));

PrincipalComponents components_of(const Array& rows, int64_t count, const Workers& workers = kAlone) {
  Communicator alone;
  return principal_components(RowSource(rows), count, alone, workers);
}

TEST(PrincipalComponentsTest, AreThoseOfNumPySingularValues) {
  const auto fixture = boost_fixture("boost_pca.npz");
  const PrincipalComponents found = components_of(fixture.at("vectors"), 6, kThreeThreads);
  const auto expected = fixture.at("components").values<float>();
  const auto variance = fixture.at("variance").values<float>();
  double ratios = 0;
  for (int64_t i = 0; i < 6; ++i) {
    const std::vector<float> row = row_of(found.basis, i);
    for (size_t j = 0; j < row.size(); ++j)
      ASSERT_NEAR(row[j], expected[static_cast<size_t>(i) * row.size() + j], 1e-6) << i << ", " << j;
    EXPECT_NEAR(found.explained_variance[i] / variance[i], 1, 1e-6);
    ratios += found.explained_ratio[i];
  }
  EXPECT_GT(ratios, 0.9);
  EXPECT_LT(ratios, 1);
}

TEST(PrincipalComponentsTest, AreOrthonormalThoughTheLastOnesAreSmall) {
  Array rows = random_walk(9, 5000);
  // Each row brings a tenth as much as the one before: the eigenvalues fall to 1e-12 of the first.
  const std::span<float> values = rows.values<float>();
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t row = i / 5000;
    values[i] *= static_cast<float>(std::pow(10.0, -static_cast<double>(row)));
  }
  const Basis& basis = components_of(rows, 6).basis;
  for (int64_t a = 0; a < 6; ++a)
    for (int64_t b = 0; b <= a; ++b) {
      const std::vector<float> left = row_of(basis, a), right = row_of(basis, b);
      double product = 0;
      for (size_t j = 0; j < left.size(); ++j) product += static_cast<double>(left[j]) * right[j];
      EXPECT_NEAR(product, a == b ? 1 : 0, 1e-5) << a << ", " << b;
    }
}

TEST(PrincipalComponentsTest, TheSameBitsOnAnyNumberOfThreadsAndRanks) {
  const RowSource source(random_walk(8, 300 * kTileColumns + 17));  // chunks of two tiles
  Communicator alone;
  const PrincipalComponents expected = principal_components(source, 5, alone, kAlone);
  const std::string identity = expected.basis.identity(alone, kAlone);
  for (const int size : {1, 3, 4})
    run_ranks(size, [&](Communicator& ranks) {
      const PrincipalComponents found = principal_components(source, 5, ranks, kThreeThreads);
      EXPECT_EQ(found.explained_variance, expected.explained_variance);
      EXPECT_EQ(found.basis.identity(ranks, kThreeThreads), identity);
      for (int64_t i = 0; i < 5; ++i) {
        std::vector<float> row(static_cast<size_t>(found.basis.own_columns().count));
        expected.basis.read(i, found.basis.own_columns().first, row);
        EXPECT_EQ(row_of(found.basis, i), row);
      }
    });
}

TEST(PrincipalComponentsTest, WhatGivesNoBasisIsRefused) {
  EXPECT_THAT(message_of<InvalidArgument>([] { components_of(random_walk(4, 100), 5); }),
              HasSubstr("4 snapshots are too few for 5 components"));
  EXPECT_THAT(
      message_of<FailedPrecondition>([] { components_of(random_walk(5, 100), 5); }),
      AllOf(HasSubstr("5 snapshots, less their mean, span only 4 directions"), HasSubstr("5 components")));
  EXPECT_THAT(message_of<FailedPrecondition>([] {
                components_of(Array(DType::kFloat32, {6, 50}), 2);
              }),
              HasSubstr("span only 0 directions"));
  Array rows = random_walk(6, 5000);
  rows.values<float>()[2 * 5000 + 4500] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(message_of<NumericError>([&] { components_of(rows, 3, kThreeThreads); }),
              HasSubstr("row 2, column 4500"));
  rows.values<float>()[2 * 5000 + 4500] = std::numeric_limits<float>::infinity();
  EXPECT_THAT(message_of<NumericError>([&] { components_of(rows, 3); }), HasSubstr("(inf)"));
}

TEST(BasisFileTest, IsANumPyArrayThatComesBack) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("made/pca_mat.npy");
  const RowSource source(random_walk(6, 5 * kTileColumns + 100));
  Communicator alone;
  const Basis basis = principal_components(source, 4, alone, kAlone).basis;
  const std::string identity = basis.identity(alone, kAlone);
  std::string first;
  for (const int size : {1, 2, 3}) {
    run_ranks(size, [&](Communicator& ranks) {
      write_basis(path, principal_components(source, 4, ranks, kAlone).basis, ranks);
      const Basis read = read_basis(path, 4, source.columns(), ranks, kThreeThreads);
      EXPECT_EQ(read.identity(ranks, kAlone), identity);
    });
    const Array whole = data::read_npy(path);
    ASSERT_EQ(whole.shape(), (Shape{4, source.columns()}));
    for (int64_t i = 0; i < 4; ++i)
      EXPECT_TRUE(std::ranges::equal(row_of(basis, i), whole.rows(i, i + 1).values<float>()));
  }
}

TEST(BasisFileTest, ARoundedBasisIsAnother) {
  Communicator alone;
  const RowSource source(random_walk(6, 3000));
  const Basis whole = principal_components(source, 4, alone, kAlone).basis,
              rounded = principal_components(source, 4, alone, kAlone, DType::kBFloat16).basis;
  EXPECT_NE(whole.identity(alone, kAlone), rounded.identity(alone, kAlone));
  EXPECT_EQ(rounded.bytes() * 2, whole.bytes());
  const std::vector<float> exact = row_of(whole, 1), near = row_of(rounded, 1);
  for (size_t j = 0; j < exact.size(); ++j) ASSERT_NEAR(near[j], exact[j], std::abs(exact[j]) / 256 + 1e-9);
}

TEST(BasisFileTest, WhatIsNoBasisOfThisModelIsRefused) {
  const TemporaryDirectory directory;
  const auto refusal = [&](const std::string& path) {
    Communicator alone;
    return message_of<Error>([&] { read_basis(path, 2, 3, alone, kAlone); });
  };
  const auto npy = [&](const std::string& name, const TensorType& type, const std::string& bytes) {
    return directory.write(name, data::make_npy_header(type) + bytes);
  };
  EXPECT_THAT(refusal(directory.file("none.npy")), HasSubstr("no file"));
  EXPECT_THAT(refusal(npy("shape.npy", {DType::kFloat32, {2, 4}}, std::string(32, '\0'))),
              AllOf(HasSubstr("is [2, 4]"), HasSubstr("needs [2, 3]")));
  EXPECT_THAT(refusal(npy("type.npy", {DType::kInt32, {2, 3}}, std::string(24, '\0'))), HasSubstr("float32"));
  const std::string header = data::make_npy_header({DType::kFloat32, {2, 3}});
  const auto with = [&](const std::string& name, const std::string& from, const std::string& to) {
    std::string changed = header;
    changed.replace(changed.find(from), to.size(), to);
    return directory.write(name, changed + std::string(24, '\0'));
  };
  EXPECT_THAT(refusal(with("fortran.npy", "False", "True ")),
              AllOf(HasSubstr("Fortran order"), HasSubstr("numpy.ascontiguousarray(array, '<f4')")));
  EXPECT_THAT(refusal(with("big.npy", "<f4", ">f4")), HasSubstr("big-endian"));
  EXPECT_THAT(refusal(npy("zeros.npy", {DType::kFloat32, {2, 3}}, std::string(24, '\0'))),
              AllOf(HasSubstr("row 0 has the length 0"), HasSubstr("numpy.linalg.norm")));
  EXPECT_THAT(refusal(npy("short.npy", {DType::kFloat32, {2, 3}}, std::string(20, '\0'))),
              HasSubstr("bytes"));
  EXPECT_THAT(refusal(npy("long.npy", {DType::kFloat32, {2, 3}}, std::string(28, '\0'))), HasSubstr("bytes"));
  EXPECT_THAT(
      refusal(npy("nan.npy", {DType::kFloat32, {2, 3}}, std::string(16, '\0') + std::string(8, '\xff'))),
      AllOf(HasSubstr("not finite in row 1, column 1")));
  EXPECT_THAT(refusal(directory.write("empty.npy", "")), HasSubstr("no .npy file"));
}

}  // namespace
}  // namespace mox::boost
