// SPDX-License-Identifier: Apache-2.0
#include "placement/topology/topology_status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "fabric/discovery/checks.h"
#include "fabric/model/fabric_model.h"
#include "kube/json.h"

namespace railhead::topology {
namespace {

using kube::Json;
using ::testing::HasSubstr;

const absl::Time kNow = absl::FromUnixSeconds(1000);
const absl::Time kLater = absl::FromUnixSeconds(2000);

// A spine of leaves with so many nodes each, of which the first has a dead rail.
ClusterFabric Fabric(int leaves, int nodes, const std::string& prefix = "l") {
  ClusterFabric fabric;
  fabric::FabricModel& model = fabric.found.model;
  model.name = "cluster";
  model.levels = {"spine", "leaf"};
  model.rails = 8;
  model.domains.resize(2);
  model.domains[0].push_back({"s0", -1, 0, leaves});
  for (int leaf = 0; leaf < leaves; ++leaf) {
    model.domains[1].push_back(
        {absl::StrCat(prefix, leaf), 0, static_cast<int>(model.nodes.size()), nodes});
    for (int n = 0; n < nodes; ++n) {
      fabric::FabricNode& node = model.nodes.emplace_back();
      node.name = absl::StrCat("n", leaf, "-", n);
      node.gpus = 8;
      node.hcas = 8;
      if (n == 0) node.dead_rails = {3};
    }
  }
  return fabric;
}

StoredTopology After(const StoredTopology& stored, const Json& applied) {
  StoredTopology next = stored;
  next.status = applied["status"];
  return next;
}

Json ConditionOf(const Json& object, const std::string& type) {
  for (const Json& condition : object["status"]["conditions"]) {
    if (condition["type"] == type) return condition;
  }
  return nullptr;
}

TEST(TopologyStatus, SaysWhatTheFabricIs) {
  StoredTopology stored;
  stored.version = "7";
  const auto object = StatusToApply(stored, {3, Fabric(2, 4), std::nullopt}, kNow);
  ASSERT_TRUE(object.has_value());
  EXPECT_EQ((*object)["metadata"]["resourceVersion"], "7");
  const Json& status = (*object)["status"];
  EXPECT_EQ(status["observedGeneration"], 3);
  EXPECT_EQ(status["topology"], "fat-tree");
  EXPECT_EQ(status["levels"].dump(),
            R"([{"domains":1,"name":"spine"},{"domains":2,"name":"leaf"}])");
  EXPECT_EQ(status["railsPerNode"], 8);
  EXPECT_EQ(status["counts"].dump(),
            R"({"aliveRails":62,"deadRails":2,"gpus":64,"nodes":8,"unschedulable":0})");
  EXPECT_EQ(status["leaves"][1].dump(),
            R"({"aliveRails":31,"deadRails":1,"gpus":32,"name":"l1","nodes":4,"path":["s0"],)"
            R"("unschedulable":0})");
  EXPECT_EQ(status["deadRails"][0].dump(), R"({"node":"n0-0","rails":[3]})");
  EXPECT_EQ(status["lastChange"], "1970-01-01T00:16:40Z");
  EXPECT_EQ(ConditionOf(*object, "Discovered")["status"], "True");
  EXPECT_EQ(ConditionOf(*object, "Discovered")["reason"], "Labels");
  EXPECT_EQ(ConditionOf(*object, "Consistent")["status"], "True");
  EXPECT_TRUE(ConditionOf(*object, "Published").is_null());
}

TEST(TopologyStatus, IsWrittenOnlyWhenItIsAnother) {
  StoredTopology stored;
  TopologyReport report = {1, Fabric(2, 4), absl::OkStatus()};
  auto object = StatusToApply(stored, report, kNow);
  ASSERT_TRUE(object.has_value());
  stored = After(stored, *object);
  EXPECT_FALSE(StatusToApply(stored, report, kLater).has_value());

  // A finding: Consistent turns, the others have been so since then.
  report.fabric->found.findings = {
      {Severity::kFail, fabric::kMiswired, "n0", "is wrong", "move the cable"},
      {Severity::kNote, fabric::kNoFacts, "n1", "good to know", "nothing to do"}};
  object = StatusToApply(stored, report, kLater);
  ASSERT_TRUE(object.has_value());
  EXPECT_EQ((*object)["status"]["lastChange"], "1970-01-01T00:33:20Z");
  const Json consistent = ConditionOf(*object, "Consistent");
  EXPECT_EQ(consistent["status"], "False");
  EXPECT_EQ(consistent["lastTransitionTime"], "1970-01-01T00:33:20Z");
  EXPECT_EQ(consistent["message"], "n0: is wrong; move the cable");
  EXPECT_EQ(ConditionOf(*object, "Published")["lastTransitionTime"], "1970-01-01T00:16:40Z");
  EXPECT_EQ((*object)["status"]["conflicts"].dump(),
            R"([{"kind":"miswired","message":"n0: is wrong; move the cable","object":"n0"}])");
  EXPECT_EQ((*object)["status"]["conflictCount"], 1);
}

TEST(TopologyStatus, SaysWhyThereIsNoFabric) {
  const TopologyReport invalid = {1, absl::InvalidArgumentError("spec.model: bad"),
                                  absl::UnavailableError("away")};
  auto object = StatusToApply({}, invalid, kNow);
  EXPECT_EQ(ConditionOf(*object, "Discovered")["reason"], "InvalidModel");
  EXPECT_EQ(ConditionOf(*object, "Discovered")["message"], "spec.model: bad");
  EXPECT_EQ(ConditionOf(*object, "Published")["reason"], "Failed");
  EXPECT_EQ(ConditionOf(*object, "Published")["message"], "away");
  const TopologyReport nothing = {1, absl::FailedPreconditionError("give labels"), std::nullopt};
  object = StatusToApply({}, nothing, kNow);
  EXPECT_EQ(ConditionOf(*object, "Discovered")["reason"], "NoPlaces");
  EXPECT_FALSE((*object)["status"].contains("leaves"));
}

TEST(TopologyStatus, IsBounded) {
  TopologyReport report = {1, Fabric(320, 16), std::nullopt};
  EXPECT_LT(kube::DumpJson(*StatusToApply({}, report, kNow)).size(), size_t{64} << 10)
      << "5,120 nodes";
  // Leaves of one node each with the longest names, and nothing but contradictions.
  report.fabric = Fabric(20000, 1, std::string(248, 'l'));
  for (int i = 0; i < 1000; ++i) {
    report.fabric->found.findings.push_back({Severity::kFail, fabric::kContradiction,
                                             std::string(300, 'o'), std::string(5000, '\xc3'),
                                             "fix"});
  }
  const Json object = *StatusToApply({}, report, kNow);
  EXPECT_LT(kube::DumpJson(object).size(), kMaxStatus + 4096);
  EXPECT_GT(object["status"]["leaves"].size(), 500);
  EXPECT_EQ(object["status"]["conflicts"].size(), 32);
  EXPECT_EQ(object["status"]["conflictCount"], 1000);
  EXPECT_EQ(object["status"]["counts"]["nodes"], 20000);
  EXPECT_EQ(object["status"]["deadRails"].size(), 64);
  for (const Json& conflict : object["status"]["conflicts"]) {
    EXPECT_LE(conflict["message"].get<std::string>().size(), 1024);
    EXPECT_LE(conflict["object"].get<std::string>().size(), 253);
  }
}

}  // namespace
}  // namespace railhead::topology
