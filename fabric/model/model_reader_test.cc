// SPDX-License-Identifier: Apache-2.0
#include "fabric/model/model_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "fabric/model/fabric_model.h"
#include "fabric/model/model_json.h"
#include "fabric/model/model_yaml.h"

namespace railhead::fabric {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Lines are counted from 1: the first spine stands in line 8.
constexpr char kTwoSpines[] = R"(apiVersion: railhead.io/v1alpha1
kind: FabricModel
metadata: {name: two-spines}
spec:
  topology: rail-optimized
  levels: [spine, leaf]
  rails: 8
  domains:
  - name: sp00
    domains:
    - name: lf000
      nodes:
      - {name: n00000, gpus: 8, hcas: 8}
      - {name: n00001, gpus: 8, hcas: 8, usedGpus: 2, usedHcas: 2}
      - {name: n00002, gpus: 8, hcas: 8, deadRails: [3], unschedulable: "taint maintenance"}
    - name: lf001
      nodes: []
  - name: sp01
    domains:
    - name: lf002
      nodes:
      - {name: n00003, gpus: 4, hcas: 2}
  linkGbps: {node: 400, leaf: 3200, spine: 25600}
)";

constexpr char kDragonfly[] = R"(apiVersion: railhead.io/v1alpha1
kind: FabricModel
metadata: {name: fly}
spec:
  topology: dragonfly
  levels: [group, router]
  rails: 1
  globalLinks:
  - {a: g0, b: g1, gbps: 200}
  domains:
  - {name: g0, domains: [{name: r0, nodes: [{name: n0, gpus: 1, hcas: 1}]}]}
  - {name: g1, domains: [{name: r1, nodes: [{name: n1, gpus: 1, hcas: 1}]}]}
)";

TEST(FabricModel, ReadsTheContractsExample) {
  const absl::StatusOr<FabricModel> model = ParseFabricModel(kTwoSpines, "fabric.yaml");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->name, "two-spines");
  EXPECT_EQ(model->topology, FabricTopology::kRailOptimized);
  EXPECT_THAT(model->levels, ElementsAre("spine", "leaf"));
  EXPECT_EQ(model->rails, 8);
  EXPECT_EQ(model->link_gbps.at("leaf"), 3200);
  EXPECT_THAT(model->domains.at(0),
              ElementsAre(FabricDomain{"sp00", -1, 0, 2}, FabricDomain{"sp01", -1, 2, 1}));
  EXPECT_THAT(model->domains.at(1),
              ElementsAre(FabricDomain{"lf000", 0, 0, 3}, FabricDomain{"lf001", 0, 3, 0},
                          FabricDomain{"lf002", 1, 3, 1}));
  EXPECT_THAT(model->nodes, ElementsAre(FabricNode{"n00000", 8, 8, 0, 0, {}, ""},
                                        FabricNode{"n00001", 8, 8, 2, 2, {}, ""},
                                        FabricNode{"n00002", 8, 8, 0, 0, {3}, "taint maintenance"},
                                        FabricNode{"n00003", 4, 2, 0, 0, {}, ""}));
  EXPECT_THAT(DomainsOfNodes(*model),
              ElementsAre(ElementsAre(0, 0, 0, 1), ElementsAre(0, 0, 0, 2)));
  EXPECT_EQ(LevelIndex(*model, "leaf"), 1);
  EXPECT_EQ(LevelIndex(*model, "rack"), std::nullopt);
}

TEST(FabricModel, ReadsADragonfly) {
  const absl::StatusOr<FabricModel> model = ParseFabricModel(kDragonfly, "fabric.yaml");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->topology, FabricTopology::kDragonfly);
  EXPECT_THAT(model->global_links, ElementsAre(GlobalLink{"g0", "g1", 200}));
}

TEST(FabricModel, ComesBackFromJson) {
  for (const char* text : {kTwoSpines, kDragonfly}) {
    const FabricModel model = ParseFabricModel(text, "fabric.yaml").value();
    EXPECT_EQ(ParseFabricModel(ToJson(model).dump(), "again").value(), model);
    EXPECT_EQ(ParseFabricModel(ToYaml(model), "again").value(), model);
  }
}

TEST(FabricModel, RailsInUseAreCounted) {
  const std::string text = absl::StrReplaceAll(
      kTwoSpines, {{"usedGpus: 2, usedHcas: 2", "usedRails: [5, 0, 3], deadRails: [3]"}});
  const absl::StatusOr<FabricModel> model = ParseFabricModel(text, "fabric.yaml");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_THAT(model->nodes[1].used_rails, ElementsAre(0, 3, 5));
  EXPECT_EQ(model->nodes[1].used_hcas, 2) << "dead ones are not in use for long";
  EXPECT_EQ(ParseFabricModel(ToJson(*model).dump(), "again").value(), *model);
  EXPECT_EQ(ParseFabricModel(ToYaml(*model), "again").value(), *model);
}

TEST(FabricModel, LevelsAndDomainsMayBeNumbered) {
  const std::string text = absl::StrReplaceAll(kTwoSpines, {{"lf000", "17"}, {"n00003", "4711"}});
  const absl::StatusOr<FabricModel> model = ParseFabricModel(text, "fabric.yaml");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->domains[1][0].name, "17");
  EXPECT_EQ(model->nodes[3].name, "4711");
}

struct Change {
  const char* from;
  const char* to;
  const char* message;
};

void ExpectRefused(const std::string& good, const Change& change) {
  const std::string text = absl::StrReplaceAll(good, {{change.from, change.to}});
  ASSERT_NE(text, good) << change.from;
  const absl::Status status = ParseFabricModel(text, "fabric.yaml").status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << change.to;
  EXPECT_THAT(status.message(), HasSubstr(change.message)) << change.to;
}

TEST(FabricModel, RefusesWithFileLineAndField) {
  const Change changes[] = {
      {"FabricModel", "Fabric", "fabric.yaml:2: kind: must be FabricModel"},
      {"v1alpha1", "v9", "fabric.yaml:1: apiVersion: must be"},
      {"metadata: {name: two-spines}", "", "metadata: is missing"},
      {"rail-optimized", "rail-optimised",
       "spec.topology: \"rail-optimised\" is not known here; did"},
      {"[spine, leaf]", "[]", "fabric.yaml:6: spec.levels: must name 1 to 8"},
      {"[spine, leaf]", "[leaf, leaf]", "spec.levels[1]: \"leaf\" is listed twice"},
      {"[spine, leaf]", "[spine, node]", "spec.levels[1]: \"node\" is not a level"},
      {"rails: 8", "rails: 0", "fabric.yaml:7: spec.rails: must be a whole number from 1 to 64"},
      {"rails: 8", "rales: 8",
       "fabric.yaml:7: spec.rales: this field is not known; did you mean rails"},
      {"n00003", "n00001",
       "fabric.yaml:22: spec.domains[1].domains[0].nodes[0].name: \"n00001\" is already the name "
       "of the node in line 14"},
      {"lf002", "lf000",
       "spec.domains[1].domains[0].name: \"lf000\" is already the name of another leaf"},
      {"sp01", "sp00", "spec.domains[1].name: \"sp00\" is already the name of another spine"},
      {"lf001", "sp00",
       "fabric.yaml:16: spec.domains[0].domains[1].name: \"sp00\" would contain itself"},
      {"usedGpus: 2", "usedGpus: 9",
       "fabric.yaml:14: spec.domains[0].domains[0].nodes[1].usedGpus: "
       "must be a whole number from 0 to 8, not 9"},
      {"usedHcas: 2", "usedHcas: 9", "nodes[1].usedHcas: must be"},
      {"usedGpus: 2", "usedRails: [1, 2, 3]",
       "usedHcas: must be a whole number from 3 to 8, not 2"},
      {"usedGpus: 2", "usedRails: [8]", "usedRails[0]: must be a whole number from 0 to 7"},
      {"usedGpus: 2", "usedGpus: -1", "nodes[1].usedGpus: must be"},
      {"gpus: 4", "gpus: -4", "fabric.yaml:22: spec.domains[1].domains[0].nodes[0].gpus: must be"},
      {"gpus: 4", "gpus: four", "gpus: must be"},
      {"gpus: 4", "gpus: '4'", "write it without quotes"},
      {"gpus: 4, ", "", "nodes[0].gpus: is missing"},
      {"hcas: 2", "hcas: 9", "nodes[0].hcas: must be a whole number from 0 to 8"},
      {"[3]", "[8]", "nodes[2].deadRails[0]: must be a whole number from 0 to 7"},
      {"[3]", "[-1]", "deadRails[0]: must be"},
      {"[3]", "[3, 3]", "deadRails[1]: rail 3 is listed twice"},
      {"[3]", "3", "deadRails: must be a list"},
      {"hcas: 2}", "hcas: 0, deadRails: [0]}", "names 1 rails, but the node has 0 HCAs"},
      {"\"taint maintenance\"", "true", "unschedulable: must be text"},
      {"nodes: []", "nodes:", "fabric.yaml:17: spec.domains[0].domains[1].nodes: has no value"},
      {"nodes: []", "domains: []", "a leaf is of the innermost level and contains nodes"},
      {"[spine, leaf]", "[leaf]", "a leaf is of the innermost level"},
      {"[spine, leaf]", "[pod, spine, leaf]", "a spine contains domains of level leaf"},
      {"nodes: []", "name: x", "name: appears a second time"},
      {"leaf: 3200", "rack: 3200", "spec.linkGbps.rack: this field is not known"},
      {"leaf: 3200", "leaf: 0", "spec.linkGbps.leaf: must be a number above zero"},
      {"leaf: 3200", "leaf: .nan", "spec.linkGbps.leaf: must be a number above zero"},
      {"linkGbps", "globalLinks", "only a dragonfly has global links"},
      {"usedHcas: 2", "usedHca: 2", "did you mean usedHcas?"},
  };
  for (const Change& change : changes) ExpectRefused(kTwoSpines, change);
}

TEST(FabricModel, RefusesBadGlobalLinks) {
  const Change changes[] = {
      {"b: g1,", "b: g2,", "spec.globalLinks[0].b: \"g2\" is not the name of a group"},
      {"b: g1,", "b: g0,", "spec.globalLinks[0]: goes from a group to itself"},
      {"gbps: 200", "gbps: -1", "spec.globalLinks[0].gbps: must be a number above zero"},
      {", gbps: 200", "", "spec.globalLinks[0].gbps: is missing"},
      {"gbps: 200}", "gbps: 200}\n  - {a: g1, b: g0, gbps: 1}",
       "fabric.yaml:10: spec.globalLinks[1]: the link between g1 and g0 is listed twice"},
  };
  for (const Change& change : changes) ExpectRefused(kDragonfly, change);
}

TEST(FabricModel, AliasesDoNotGrowWithoutEnd) {
  std::string bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n";
  for (int i = 1; i < 12; ++i) {
    absl::StrAppend(&bomb, "a", i, ": &a", i, " [*a", i - 1, ",*a", i - 1, ",*a", i - 1, "]\n");
  }
  EXPECT_THAT(ParseFabricModel(bomb, "fabric.yaml").status().message(),
              HasSubstr("this field is not known"));
  // The one place where aliases may be followed many times: nodes, whose names must differ.
  const std::string nodes = absl::StrReplaceAll(
      kTwoSpines, {{"nodes: []", "nodes: &n [{name: x, gpus: 1, hcas: 1}]"},
                   {"nodes:\n      - {name: n00003, gpus: 4, hcas: 2}", "nodes: *n"}});
  EXPECT_THAT(ParseFabricModel(nodes, "fabric.yaml").status().message(),
              HasSubstr("\"x\" is already the name of the node in line 17"));
}

// Any damage to a good file gives either an error or a model that can be written and read.
TEST(FabricModel, RandomDamage) {
  const std::string good = kTwoSpines;
  std::mt19937 random(8);
  int read_well = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string text = good;
    for (unsigned changes = 1 + random() % 3; changes > 0; --changes) {
      const size_t at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text[at] = static_cast<char>(' ' + random() % 95);
          break;
        case 1:
          text.erase(at, 1 + random() % 8);
          break;
        default:
          text.insert(at, text.substr(random() % text.size(), random() % 16));
      }
    }
    const absl::StatusOr<FabricModel> model = ParseFabricModel(text, "fabric.yaml");
    if (!model.ok()) continue;
    ++read_well;
    ASSERT_EQ(ParseFabricModel(ToJson(*model).dump(), "again").value(), *model) << text;
    ASSERT_EQ(ParseFabricModel(ToYaml(*model), "again").value(), *model) << text;
  }
  EXPECT_GT(read_well, 100);
}

}  // namespace
}  // namespace railhead::fabric
