// SPDX-License-Identifier: Apache-2.0
#include "cli/sizing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "cli/folder_for_test.h"
#include "cli/plan.h"
#include "cli/size_plan.h"

namespace railhead::cli {
namespace {

using ::testing::DoubleNear;
using ::testing::HasSubstr;

SizingRequest SeventyBillion() {
  SizingRequest request;
  request.parameters = 70e9;
  request.seconds = 0.2;
  return request;
}

TEST(SizingTest, SeventyBillionParametersInTwoHundredMilliseconds) {
  const Sizing sizing = Size(SeventyBillion());
  EXPECT_THAT(sizing.traffic_bytes, DoubleNear(280e9, 1));
  EXPECT_THAT(sizing.needed_bytes_per_second, DoubleNear(1.4e12, 1));
  EXPECT_THAT(sizing.node_bytes_per_second, DoubleNear(360e9, 1));
  EXPECT_EQ(sizing.nodes_per_replica, 4);
  EXPECT_EQ(sizing.rails_per_node, 8);
  EXPECT_LE(sizing.seconds, 0.2);
  EXPECT_FALSE(sizing.nodes.has_value());
}

TEST(SizingTest, TheFewestNodesAndRailsThatSuffice) {
  SizingRequest request = SeventyBillion();
  for (const int replicas : {2, 3, 8, 128}) {
    for (const int rails : {1, 2, 8}) {
      request.replicas = replicas;
      request.rails = rails;
      const Sizing sizing = Size(request);
      const double rail = 400e9 / 8 * 0.9;
      const double needed = 2.0 * (replicas - 1) / replicas * 140e9 / 0.2;
      EXPECT_LE(needed, sizing.nodes_per_replica * sizing.rails_per_node * rail * 1.000001);
      EXPECT_GT(needed, (sizing.nodes_per_replica - 1) * rails * rail * 0.999999);
      EXPECT_GT(needed, sizing.nodes_per_replica * (sizing.rails_per_node - 1) * rail * 0.999999);
      EXPECT_EQ(sizing.nodes, replicas * sizing.nodes_per_replica);
    }
  }
}

TEST(SizingTest, AsManyReplicasAsTheNodesAllow) {
  SizingRequest request = SeventyBillion();
  request.nodes = 33;
  EXPECT_EQ(Size(request).replicas, 8);
  EXPECT_EQ(Size(request).nodes, 32);
  request.nodes = 3;
  EXPECT_FALSE(Size(request).fits);
}

TEST(SizingTest, ABillionNodesDoNotFit) {
  SizingRequest request = SeventyBillion();
  request.parameters = 100e9;
  request.seconds = 1e-3;
  request.replicas = 1'000'000;
  EXPECT_FALSE(Size(request).fits);
  EXPECT_TRUE(Size(request).nodes.has_value());
  request = SeventyBillion();
  request.parameters = 1e15;
  request.seconds = 1e-9;
  EXPECT_FALSE(Size(request).fits);
  request.nodes = 4;
  const Sizing sizing = Size(request);
  EXPECT_FALSE(sizing.fits);
  EXPECT_GT(*sizing.nodes, 4);
  EXPECT_LE(sizing.rails_per_node, request.rails);
}

TEST(SizingTest, WhatFitsExactlyIsNotRoundedUp) {
  SizingRequest request;
  request.parameters = 45e9;  // 90 GB, 180 GB of traffic at most
  request.seconds = 0.5;      // 360 GB/s: one node
  EXPECT_EQ(Size(request).nodes_per_replica, 1);
  EXPECT_EQ(Size(request).rails_per_node, 8);
}

TEST(ParseParametersTest, TakesUnitsAndRefusesTheRest) {
  EXPECT_EQ(*ParseParameters("70B"), 70e9);
  EXPECT_EQ(*ParseParameters("1.5T"), 1.5e12);
  EXPECT_EQ(*ParseParameters("7e9"), 7e9);
  for (const char* wrong : {"", "B", "70G", "-1", "0", "nan", "inf", "1e300", "2e15"}) {
    EXPECT_THAT(std::string(ParseParameters(wrong).status().message()), HasSubstr("such as 70B"))
        << wrong;
  }
}

class SizePlanTest : public ::testing::Test {
 protected:
  SizePlanTest() {
    options_.parameters = "70B";
    options_.within = "200ms";
  }
  int Run() {
    out_.str("");
    err_.str("");
    return RunSizePlan(options_, out_, err_);
  }
  std::string Fabric(int nodes) {
    std::string text =
        "apiVersion: railhead.io/v1alpha1\nkind: FabricModel\nmetadata: {name: small}\n"
        "spec:\n  topology: rail-optimized\n  levels: [leaf]\n  rails: 8\n"
        "  linkGbps: {node: 400}\n  domains:\n  - name: l\n    nodes:\n"
        "    - {name: broken, gpus: 8, hcas: 8, deadRails: [3]}\n";
    for (int i = 0; i < nodes; ++i) {
      absl::StrAppend(&text, "    - {name: n", i, ", gpus: 8, hcas: 8}\n");
    }
    return folder_.Write("fabric.yaml", text);
  }

  FolderForTest folder_;
  SizePlanOptions options_;
  std::ostringstream out_;
  std::ostringstream err_;
};

TEST_F(SizePlanTest, TheFormulaIsShown) {
  options_.replicas = 8;
  EXPECT_EQ(Run(), kPlaced) << err_.str();
  EXPECT_EQ(out_.str(),
            "gradients  7e+10 parameters x 2 bytes = 140 GB\n"
            "traffic    2(n-1)/n x 140 GB = 245 GB of each replica, n = 8 replicas\n"
            "needed     245 GB / 200ms = 1225 GB/s of each replica\n"
            "a node     8 x 400 Gb/s / 8 x 0.9 = 360 GB/s\n"
            "so         4 nodes for each replica, 32 in all; 7 of 8 rails suffice, all take 170.1 "
            "ms\n");
}

TEST_F(SizePlanTest, AFabricSaysWhichNodes) {
  options_.fabric = Fabric(9);
  options_.json = true;
  EXPECT_EQ(Run(), kPlaced) << err_.str() << out_.str();
  const nlohmann::json answer = nlohmann::json::parse(out_.str());
  EXPECT_EQ(answer["replicas"], 3);  // of 3 nodes each: 2 x 2/3 x 140 GB
  EXPECT_EQ(answer["nodes"], 9);
  EXPECT_EQ(answer["assignment"].size(), 9);
  options_.json = false;
  EXPECT_EQ(Run(), kPlaced);
  EXPECT_THAT(out_.str(), HasSubstr("9 pods of 8 GPUs and"));
}

TEST_F(SizePlanTest, TooFewNodesAreSaidSo) {
  options_.fabric = Fabric(2);
  EXPECT_EQ(Run(), kNotPlaced);
  EXPECT_THAT(out_.str(), HasSubstr("does not fit: two replicas need 4 nodes, and there are 2"));
  options_.fabric = Fabric(0);
  EXPECT_EQ(Run(), kNotPlaced);
  EXPECT_THAT(err_.str(), HasSubstr("no node of fabric small is free with 8 rails"));
}

TEST_F(SizePlanTest, BadInputIsNamed) {
  options_.within = "200";
  EXPECT_EQ(Run(), kBadInput);
  EXPECT_THAT(err_.str(), HasSubstr("--within 200: give the time of an all-reduce"));
  options_.within = "1s";
  options_.fabric = folder_.Path("none.yaml");
  EXPECT_EQ(Run(), kBadInput);
  EXPECT_THAT(err_.str(), HasSubstr("none.yaml"));
}

}  // namespace
}  // namespace railhead::cli
