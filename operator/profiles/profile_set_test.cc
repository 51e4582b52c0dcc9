// SPDX-License-Identifier: Apache-2.0
#include "operator/profiles/profile_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace railhead::op {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kProfile[] = R"(
apiVersion: railhead.io/v1alpha1
kind: RailProfile
metadata: {name: a}
spec: {fabric: TCP, namespaceSelector: {matchLabels: {team: ml}}}
)";

TEST(AddObjectsTest, TakesProfilesNamespacesAndNodes) {
  ProfileSet set;
  ASSERT_TRUE(AddObjects(kProfile, "first", set).ok());
  const absl::Status added = AddObjects(R"(
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Namespace, metadata: {name: train, labels: {team: ml}}}
- {apiVersion: v1, kind: Node, metadata: {name: n0, labels: {
    railhead.io/rails: "8", railhead.io/link-layer: InfiniBand, railhead.io/gpus: "8",
    railhead.io/gpudirect: dmabuf}}}
- {apiVersion: v1, kind: Node, metadata: {name: n1, labels: {
    railhead.io/rails: "8", railhead.io/link-layer: InfiniBand, railhead.io/gpus: "8",
    railhead.io/gpudirect: none}}}
- {apiVersion: v1, kind: Node, metadata: {name: n2, labels: {
    railhead.io/rails: "2", railhead.io/link-layer: mixed, railhead.io/gpus: "0"}}}
- {apiVersion: v1, kind: Node, metadata: {name: n3, labels: {
    railhead.io/rails: "8", railhead.io/gpus: "8", railhead.io/gpudirect: peermem}}}
- {apiVersion: v1, kind: Node, metadata: {name: plain}}
- {apiVersion: v1, kind: Node, metadata: {name: odd, labels: {railhead.io/rails: "many"}}}
)",
                                        "second", set);
  ASSERT_TRUE(added.ok()) << added;
  ASSERT_EQ(set.profiles.size(), 1U);
  EXPECT_EQ(set.profiles[0].name, "a");
  FabricFacts facts;
  facts.nodes = 4;
  facts.link_layers = {{"InfiniBand", 2}, {"mixed", 1}};
  facts.gpu_direct = 2;
  facts.no_gpu_direct = 1;
  facts.no_gpu_direct_node = "n1";
  EXPECT_EQ(set.facts, facts);
  EXPECT_EQ(set.NamespaceLabels("train"),
            (Labels{{"team", "ml"}, {"kubernetes.io/metadata.name", "train"}}));
  EXPECT_EQ(set.NamespaceLabels("else"), (Labels{{"kubernetes.io/metadata.name", "else"}}));
}

TEST(AddObjectsTest, RefusalsNameSourceObjectAndField) {
  const struct {
    std::string text;
    const char* message;
  } kCases[] = {
      {"a: [", "x:1: the document: is not YAML"},
      {"{}", "x: kind: '' is not supported here"},
      {"{apiVersion: v1, kind: Pod}", "x: kind: 'Pod' is not supported here"},
      {"{apiVersion: v1, kind: List}", "x: items: must be a list"},
      {"{apiVersion: v1, kind: List, items: [7]}", "x: kind: '' is not supported here"},
      {std::string(kProfile) + "---" + kProfile, "x: RailProfile a: metadata.name: appears twice"},
      {"{apiVersion: railhead.io/v1alpha1, kind: RailProfile, metadata: {name: b}, spec: {}}",
       "x: RailProfile b: spec.fabric: must be one of"},
  };
  for (const auto& wrong : kCases) {
    ProfileSet set;
    const absl::Status status = AddObjects(wrong.text, "x", set);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << wrong.text;
    EXPECT_THAT(std::string(status.message()), StartsWith(wrong.message));
  }
}

TEST(LoadProfileSetTest, ReadsAFileOrAFolder) {
  const std::filesystem::path folder =
      ::testing::TempDir() + "/profiles-" + std::to_string(getpid());
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  std::ofstream(folder / "a.yaml") << kProfile;
  std::ofstream(folder / "b.json")
      << R"({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}})";
  std::ofstream(folder / "notes.txt") << "not one of ours";
  const absl::StatusOr<ProfileSet> all = LoadProfileSet(folder);
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(all->profiles.size(), 1U);
  EXPECT_EQ(all->namespaces.count("n"), 1U);
  const absl::StatusOr<ProfileSet> one = LoadProfileSet(folder / "b.json");
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_TRUE(one->profiles.empty());

  std::ofstream(folder / "c.yml") << "kind: Pod";
  EXPECT_THAT(std::string(LoadProfileSet(folder).status().message()),
              HasSubstr("c.yml: kind: 'Pod'"));
  EXPECT_THAT(std::string(LoadProfileSet(folder / "none").status().message()), HasSubstr("none"));
}

}  // namespace
}  // namespace railhead::op
