// SPDX-License-Identifier: Apache-2.0
#include "placement/decision.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_replace.h"
#include "placement/testing/random_fabric.h"

namespace railhead::placement {
namespace {

using ::testing::HasSubstr;

Decision Example() {
  std::mt19937 random(4);
  Decision decision;
  testing::Shape shape;
  shape.fanout = {2, 2};
  shape.nodes_per_leaf = 2;
  shape.partly_used = 0.5;
  shape.dead_rails = 0.5;
  shape.unschedulable = 0.3;
  decision.fabric = testing::RandomFabric(shape, random);
  decision.request.name = "job";
  decision.request.pods = 2;
  decision.request.gpus_per_pod = 4;
  decision.request.prefer_level = "leaf";
  decision.request.parallelism = {{"tp", 4}, {"dp", 2}};
  decision.request.pattern = Pattern::kTree;
  decision.nodes = {"n1", "n3"};
  return decision;
}

std::string ErrorOf(const std::string& from, const std::string& to) {
  const std::string good = ToJson(Example());
  const std::string text = absl::StrReplaceAll(good, {{from, to}});
  EXPECT_NE(text, good) << from;
  return std::string(ParseDecision(text, "d.json").status().message());
}

TEST(Decision, RoundTrip) {
  const absl::StatusOr<Decision> read = ParseDecision(ToJson(Example()), "d.json");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, Example());
  EXPECT_EQ(ToJson(*read), ToJson(Example()));
}

TEST(Decision, RefusesWhatIsWrongInItsParts) {
  EXPECT_THAT(ErrorOf("PlacementDecision", "Decision"), HasSubstr("d.json:1: kind"));
  EXPECT_THAT(ErrorOf("FabricModel", "Fabric"), HasSubstr("kind: must be FabricModel"));
  EXPECT_THAT(ErrorOf("\"preferLevel\":\"leaf\"", "\"preferLevel\":\"rack\""),
              HasSubstr("spec.preferLevel: \"rack\" is not known here"));
  EXPECT_THAT(ErrorOf("[\"n1\",\"n3\"]", "[\"n1\",\"x\"]"), HasSubstr("nodes[1]: \"x\""));
  EXPECT_THAT(ErrorOf("[\"n1\",\"n3\"]", "[\"n1\"]"), HasSubstr("one node for each of the 2 pods"));
  EXPECT_THAT(ErrorOf(",\"nodes\":[\"n1\",\"n3\"]", ""), HasSubstr("nodes: is missing"));
}

TEST(Decision, TellsDifferences) {
  const Decision saved = Example();
  EXPECT_EQ(Difference(saved, saved.nodes), "");
  EXPECT_EQ(Difference(saved, {"n1", "n2"}),
            "1 of 2 ranks are on other nodes: rank 1 was on n3, and is "
            "now on n2");
  EXPECT_EQ(Difference(saved, {}), "the gang was placed, but now it is not");
}

}  // namespace
}  // namespace railhead::placement
