// SPDX-License-Identifier: Apache-2.0
#include "placement/topology/published.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "fabric/model/fabric_model.h"
#include "fabric/model/model_reader.h"
#include "fabric/natural_order.h"
#include "placement/topology/place_value.h"

namespace railhead::topology {
namespace {

using fabric::FabricModel;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

constexpr char kSmall[] = R"(apiVersion: railhead.io/v1alpha1
kind: FabricModel
metadata: {name: Small Pod}
spec:
  topology: fat-tree
  levels: [spine, leaf]
  rails: 1
  domains:
  - name: sp0
    domains:
    - name: lf2
      nodes: [{name: n2, gpus: 1, hcas: 1}, {name: n10, gpus: 1, hcas: 1}]
    - name: LF_10
      nodes: [{name: n11, gpus: 1, hcas: 1}]
)";

FabricModel Model(const std::string& text) {
  absl::StatusOr<FabricModel> model = fabric::ParseFabricModel(text, "f.yaml");
  EXPECT_TRUE(model.ok()) << model.status();
  return *std::move(model);
}

PlaceLabels Labels(const FabricModel& model) {
  absl::StatusOr<PlaceLabels> labels = LabelsOfPlaces(model);
  EXPECT_TRUE(labels.ok()) << labels.status();
  return *std::move(labels);
}

std::string ErrorOf(const FabricModel& model) {
  const absl::Status status = LabelsOfPlaces(model).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  return std::string(status.message());
}

TEST(Published, NodesHaveALabelOfEachLevel) {
  const FabricModel model = Model(kSmall);
  const OrderedJson list = NodesWithLabels(model, Labels(model), {{"n10", "u10"}, {"n2", "u2"}});
  EXPECT_EQ(list["kind"], "List");
  ASSERT_EQ(list["items"].size(), 2) << "nobody knows n11";
  EXPECT_EQ(list["items"][0].dump(),
            R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"n10","uid":"u10","labels":{)"
            R"("railhead.io/topology-leaf":"lf00002","railhead.io/topology-node":"n00010",)"
            R"("railhead.io/topology-spine":"sp00000"}}})");
}

TEST(Published, ANodeWithoutAPlaceLosesItsLabels) {
  const FabricModel model = Model(kSmall);
  const OrderedJson list = NodesWithLabels(model, Labels(model), {{"gone-from-the-fabric", "u1"}});
  ASSERT_EQ(list["items"].size(), 1);
  EXPECT_EQ(list["items"][0]["metadata"].dump(),
            R"({"name":"gone-from-the-fabric","uid":"u1","labels":{}})");
}

TEST(Published, TopologiesNameTheLabels) {
  const FabricModel model = Model(kSmall);
  EXPECT_EQ(
      KueueTopology(model, Labels(model)).dump(),
      R"({"apiVersion":"kueue.x-k8s.io/v1beta2","kind":"Topology",)"
      R"("metadata":{"name":"small-pod-b60c55d7","labels":{"app.kubernetes.io/managed-by":"railhead",)"
      R"("railhead.io/topology":"small-pod-b60c55d7"}},"spec":{"levels":[)"
      R"({"nodeLabel":"railhead.io/topology-spine"},{"nodeLabel":"railhead.io/topology-leaf"},)"
      R"({"nodeLabel":"railhead.io/topology-node"},{"nodeLabel":"kubernetes.io/hostname"}]}})");
  EXPECT_EQ(
      KaiTopology(model, Labels(model)).dump(),
      R"({"apiVersion":"kai.scheduler/v1alpha1","kind":"Topology",)"
      R"("metadata":{"name":"small-pod-b60c55d7","labels":{"app.kubernetes.io/managed-by":"railhead",)"
      R"("railhead.io/topology":"small-pod-b60c55d7"}},"spec":{"levels":[)"
      R"({"nodeLabel":"railhead.io/topology-spine"},{"nodeLabel":"railhead.io/topology-leaf"},)"
      R"({"nodeLabel":"kubernetes.io/hostname"}]}})");
}

TEST(Published, HyperNodesAreTheTree) {
  const FabricModel model = Model(kSmall);
  const OrderedJson list = VolcanoHyperNodes(model);
  ASSERT_EQ(list["items"].size(), 3);
  EXPECT_EQ(list["items"][0].dump(),
            R"({"apiVersion":"topology.volcano.sh/v1alpha1","kind":"HyperNode",)"
            R"("metadata":{"name":"leaf-lf2","labels":{"app.kubernetes.io/managed-by":"railhead",)"
            R"("railhead.io/topology":"small-pod-b60c55d7"}},"spec":{"tier":1,"members":[)"
            R"({"type":"Node","selector":{"exactMatch":{"name":"n2"}}},)"
            R"({"type":"Node","selector":{"exactMatch":{"name":"n10"}}}]}})");
  const std::string second = list["items"][1]["metadata"]["name"];
  EXPECT_THAT(second, MatchesRegex("leaf-lf-10-[0-9a-f]{8}"));
  EXPECT_EQ(list["items"][2].dump(),
            R"({"apiVersion":"topology.volcano.sh/v1alpha1","kind":"HyperNode",)"
            R"("metadata":{"name":"spine-sp0","labels":{"app.kubernetes.io/managed-by":"railhead",)"
            R"("railhead.io/topology":"small-pod-b60c55d7"}},"spec":{"tier":2,"members":[)"
            R"({"type":"HyperNode","selector":{"exactMatch":{"name":"leaf-lf2"}}},)"
            R"({"type":"HyperNode","selector":{"exactMatch":{"name":")" +
                second + R"("}}}]}})");
}

// "rack" and "row-1" are "rack-row-1", as "rack-row" and "1" are; and so are names that differ in
// leading zeros, though labels cannot tell them apart.
TEST(Published, HyperNodesHaveNamesOfTheirOwn) {
  FabricModel model = Model(kSmall);
  model.levels = {"rack-row", "rack"};
  model.domains[0][0].name = "1";
  model.domains[1][0].name = "row-1";
  model.domains[1][1].name = "row-01";
  const OrderedJson list = VolcanoHyperNodes(model);
  std::set<std::string> names;
  for (const OrderedJson& item : list["items"]) names.insert(item["metadata"]["name"]);
  EXPECT_EQ(names.size(), 3);
  std::set<std::string> inner;
  for (const OrderedJson& member : list["items"][2]["spec"]["members"]) {
    inner.insert(member["selector"]["exactMatch"]["name"]);
  }
  names.erase(list["items"][2]["metadata"]["name"]);
  EXPECT_EQ(inner, names);
}

TEST(Published, AnotherOrderOfTheModelIsTold) {
  FabricModel model = Model(kSmall);
  EXPECT_FALSE(Labels(model).in_order) << "LF_10 sorts before lf2";
  model.domains[1][1].name = "lf10";
  EXPECT_TRUE(Labels(model).in_order);
}

TEST(Published, WhatCannotBeALabelIsRefused) {
  FabricModel model = Model(kSmall);
  model.domains[1][1].name = "lf02";
  EXPECT_THAT(ErrorOf(model), HasSubstr("fabric Small Pod: leaf \"lf2\" and leaf \"lf02\" would "
                                        "both have the label value lf00002"));
  model = Model(kSmall);
  model.nodes[2].name = "n0010";
  EXPECT_THAT(ErrorOf(model), HasSubstr("node \"n10\" and node \"n0010\""));
  for (const std::string& level :
       {std::string("a b"), std::string("node"), std::string("x-"), std::string(60, 'l')}) {
    model = Model(kSmall);
    model.levels[0] = level;
    EXPECT_THAT(ErrorOf(model), HasSubstr(absl::StrCat("levels: \"", level.substr(0, 20))));
  }
  model.levels.assign(15, "l");
  EXPECT_THAT(ErrorOf(model), HasSubstr("levels: has 15, but a Topology can have at most 14"));
}

TEST(PlaceValue, IsAValidLabelThatTellsTheName) {
  EXPECT_EQ(PlaceValue("lf7"), "lf00007");
  EXPECT_EQ(PlaceValue("lf089999"), "lf89999");
  EXPECT_EQ(PlaceValue("lf90000"), "lf9590000");
  EXPECT_EQ(PlaceValue("s123456789"), "s9909123456789");
  EXPECT_EQ(PlaceValue("su0-leaf"), "su00000-leaf");
  EXPECT_THAT(PlaceValue("leaf<3>"), MatchesRegex("leaf-00003--[0-9a-f]{8}"));
  EXPECT_THAT(PlaceValue("-a"), MatchesRegex("0-a-[0-9a-f]{8}"));
  EXPECT_THAT(PlaceValue(""), MatchesRegex("0-[0-9a-f]{8}"));
  EXPECT_NE(PlaceValue("leaf<3>"), PlaceValue("leaf(3)"));
  EXPECT_NE(PlaceValue(std::string(64, 'a')), PlaceValue(std::string(65, 'a')));
  EXPECT_EQ(ObjectName("two-spines"), "two-spines");
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    std::string name(random() % 100, ' ');
    for (char& c : name) c = static_cast<char>(random() % 256);
    EXPECT_LE(PlaceValue(name).size(), 63);
    EXPECT_THAT(PlaceValue(name), MatchesRegex("[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?"));
    EXPECT_LE(ObjectName(name).size(), 63);
    EXPECT_THAT(ObjectName(name), MatchesRegex("[a-z0-9]([a-z0-9-]*[a-z0-9])?"));
  }
}

// Names as switches and hosts have them, with numbers of all lengths and no leading zeros.
std::string RandomName(std::mt19937& random) {
  const std::vector<std::string> parts = {"lf", "sp-", "Rack_", "a.b", "gpu-", "x"};
  std::string name;
  for (size_t i = 0; i <= random() % 3; ++i) {
    const unsigned digits = 1 + random() % (random() % 4 == 0 ? 12 : 3);
    name += parts[random() % parts.size()] + std::string(1, static_cast<char>('1' + random() % 9));
    for (unsigned d = 1; d < digits; ++d) name += static_cast<char>('0' + random() % 10);
  }
  return random() % 4 == 0 ? name + "y" : name;
}

TEST(PlaceValue, SortsAsNamesDo) {
  std::mt19937 random(2);
  for (int i = 0; i < 20000; ++i) {
    const std::string a = RandomName(random);
    const std::string b = RandomName(random);
    if (PlaceValue(a).size() == 63 || PlaceValue(b).size() == 63) continue;
    EXPECT_EQ(PlaceValue(a) < PlaceValue(b), fabric::NaturalLess(a, b)) << a << " " << b;
    EXPECT_EQ(PlaceValue(a) == PlaceValue(b), a == b) << a << " " << b;
  }
}

TEST(PlaceValue, LongNamesSortByTheirNumbers) {
  std::mt19937 random(4);
  const std::vector<std::string> texts = {"company-production-training-cluster-",
                                          "-frankfurt-datacenter-hall-", "-rack-", "-unit-",
                                          ".gpu.internal.company-infrastructure.example"};
  const auto name = [&] {
    std::string long_name;
    for (const std::string& text : texts) {
      absl::StrAppend(&long_name, text, 1 + random() % (random() % 4 == 0 ? 200000 : 12));
    }
    return long_name;
  };
  for (int i = 0; i < 5000; ++i) {
    const std::string a = name();
    const std::string b = name();
    EXPECT_LE(PlaceValue(a).size(), 63);
    EXPECT_EQ(PlaceValue(a) < PlaceValue(b), fabric::NaturalLess(a, b)) << a << " " << b;
  }
  EXPECT_THAT(PlaceValue("company-production-training-cluster-frankfurt-rack12-node3"),
              MatchesRegex("company-production-training-clust00012-node00003-[0-9a-f]{8}"));
}

// Paths of nodes, outermost first, in natural order; a model of them.
using Path = std::vector<std::string>;

FabricModel ModelOf(const std::vector<Path>& paths) {
  FabricModel model;
  model.name = "f";
  model.levels = {"core", "spine", "leaf"};
  model.rails = 1;
  model.domains.resize(3);
  Path before;
  for (const Path& path : paths) {
    bool changed = false;
    for (size_t level = 0; level < 3; ++level) {
      changed = changed || before.empty() || path[level] != before[level];
      if (!changed) continue;
      const int parent = level == 0 ? -1 : static_cast<int>(model.domains[level - 1].size()) - 1;
      const size_t first = level == 2 ? model.nodes.size() : model.domains[level + 1].size();
      if (level > 0) ++model.domains[level - 1].back().count;
      model.domains[level].push_back({path[level], parent, static_cast<int>(first), 0});
    }
    ++model.domains[2].back().count;
    model.nodes.emplace_back().name = path[3];
    before = path;
  }
  return model;
}

TEST(Published, SortingByLabelsIsTheFabricsOrderAndOthersKeepTheirs) {
  std::mt19937 random(3);
  for (int i = 0; i < 100; ++i) {
    std::set<std::string> taken;
    const auto fresh = [&] {
      std::string name = RandomName(random);
      while (PlaceValue(name).size() > 53 || !taken.insert(name).second) name = RandomName(random);
      return name;
    };
    std::vector<Path> paths;
    for (size_t core = 0; core <= random() % 3; ++core) {
      const std::string c = fresh();
      for (size_t spine = 0; spine <= random() % 3; ++spine) {
        const std::string s = fresh();
        for (size_t leaf = 0; leaf <= random() % 4; ++leaf) {
          const std::string l = fresh();
          for (size_t node = 0; node <= random() % 5; ++node) paths.push_back({c, s, l, fresh()});
        }
      }
    }
    std::sort(paths.begin(), paths.end(), [](const Path& a, const Path& b) {
      return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(),
                                          fabric::NaturalLess);
    });
    const FabricModel model = ModelOf(paths);
    const PlaceLabels labels = Labels(model);
    EXPECT_TRUE(labels.in_order);
    std::map<std::string, std::string> node_at;  // by what Kueue sorts by
    std::map<std::string, std::vector<std::string>> before;
    for (size_t node = 0; node < paths.size(); ++node) {
      node_at[absl::StrJoin(labels.values[node], ",")] = model.nodes[node].name;
      before[model.nodes[node].name] = labels.values[node];
    }
    ASSERT_EQ(node_at.size(), paths.size());
    size_t next = 0;
    for (const auto& [values, node] : node_at) EXPECT_EQ(node, paths[next++][3]);

    // Some go, with their leaf where it was the last one of it.
    std::erase_if(paths, [&](const Path& path) { return path != paths[0] && random() % 3 == 0; });
    const FabricModel smaller = ModelOf(paths);
    const PlaceLabels after = Labels(smaller);
    for (size_t node = 0; node < paths.size(); ++node) {
      EXPECT_EQ(after.values[node], before[smaller.nodes[node].name]);
    }
  }
}

}  // namespace
}  // namespace railhead::topology
