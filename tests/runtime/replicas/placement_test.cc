#include "runtime/replicas/placement.h"

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include "runtime/base/error.h"

namespace mox::internal {
namespace {

using testing::HasSubstr;

std::string refusal_of(const PlacementRequest& request) {
  try {
    place(request);
  } catch (const FailedPrecondition& error) {
    return error.what();
  }
  return "not refused";
}

TEST(Placement, OneDeviceHasAllCoresAndOneReplica) {
  const Placement placement = place({.cores = 8});
  EXPECT_EQ(placement.logical_replicas, 1);
  EXPECT_EQ(placement.threads_per_replica, 8);
  EXPECT_EQ(placement.lanes, 1);
}

TEST(Placement, SeveralDevicesShareTheCores) {
  const Placement placement = place({.ranks = 2, .devices = 2, .cores = 8});
  EXPECT_EQ(placement.logical_replicas, 4);
  EXPECT_EQ(placement.threads_per_replica, 4);
  EXPECT_EQ(placement.lanes, 2);
  EXPECT_EQ(placement.describe(), "4 logical replicas: 2 ranks x 2 devices x 1 lane of 4 threads");
}

TEST(Placement, GivenReplicasComputeWithOneThreadAndShareTheLanesEvenly) {
  const Placement placement = place({.rank = 1, .ranks = 2, .cores = 4, .logical_replicas = 12});
  EXPECT_EQ(placement.threads_per_replica, 1);
  EXPECT_EQ(placement.lanes, 3) << "six replicas on four cores: three lanes of two";
  EXPECT_EQ(placement.replicas(), (LeafRange{6, 12}));
  EXPECT_EQ(placement.replicas_of(2), (LeafRange{10, 12}));
}

TEST(Placement, AContinuedRunKeepsItsReplicasAndTheirThreads) {
  const PlacementRequest request{
      .cores = 8, .kept_replicas = 4, .kept_threads_per_replica = 2, .checkpoint = "dir"};
  const Placement placement = place(request);
  EXPECT_EQ(placement.logical_replicas, 4);
  EXPECT_EQ(placement.threads_per_replica, 2);
  EXPECT_EQ(placement.lanes, 4);
}

TEST(Placement, WhatCannotBeKeptIsRefused) {
  EXPECT_THAT(refusal_of({.ranks = 3, .logical_replicas = 4}),
              HasSubstr("3 ranks x 1 device = 3 (ranks x devices); these numbers can: 1, 2, 4."));
  EXPECT_THAT(
      refusal_of(
          {.logical_replicas = 2, .kept_replicas = 4, .kept_threads_per_replica = 1, .checkpoint = "dir"}),
      HasSubstr("'dir' was trained with 4 logical replicas and logical_replicas is 2 now"));
  EXPECT_THAT(
      refusal_of({.cores = 2, .kept_replicas = 4, .kept_threads_per_replica = 3, .checkpoint = "dir"}),
      HasSubstr("'dir' was computed by teams of 3 threads, and a device has 2 here"));
}

TEST(Placement, InexactRunsGetOneReplicaADevice) {
  const Placement placement = place(
      {.ranks = 3, .cores = 2, .kept_replicas = 4, .kept_threads_per_replica = 1, .allow_inexact = true});
  EXPECT_EQ(placement.logical_replicas, 3);
  EXPECT_EQ(placement.threads_per_replica, 2);
  EXPECT_EQ(place({.cores = 2, .kept_replicas = 4, .kept_threads_per_replica = 3, .allow_inexact = true})
                .threads_per_replica,
            2);
}

TEST(Placement, OtherReplicasOfAContinuedRunMustBeSpreadEvenlyToo) {
  PlacementRequest request{.devices = 2,
                           .cores = 2,
                           .logical_replicas = 3,
                           .kept_replicas = 4,
                           .kept_threads_per_replica = 1,
                           .checkpoint = "dir"};
  EXPECT_THAT(refusal_of(request), testing::AllOf(HasSubstr("4 logical replicas and logical_replicas is 3"),
                                                  HasSubstr("1 rank x 2 devices = 2")));
  request.allow_inexact = true;
  const Placement placement = place(request);
  EXPECT_EQ(placement.logical_replicas, 2) << "all of which the devices compute";
  EXPECT_EQ(placement.lanes * placement.replicas_per_lane(), placement.logical_replicas);
  request.logical_replicas = 6;
  EXPECT_EQ(place(request).logical_replicas, 6);
}

}  // namespace
}  // namespace mox::internal
