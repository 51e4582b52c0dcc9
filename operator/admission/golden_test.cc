// SPDX-License-Identifier: Apache-2.0
//
// Admission by example: each testdata/admission/NAME.yaml holds a pod and the cluster that it comes
// to (RailProfiles, Namespaces, Nodes), and NAME.json what the webhook answers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_replace.h"
#include "kube/json.h"
#include "kube/yaml.h"
#include "operator/admission/mutation.h"
#include "operator/objects/not_done.h"
#include "operator/profiles/profile_set.h"

namespace railhead::op {
namespace {

using kube::Json;

const InjectionConfig kGoldenConfig = {
    .environment = {{"NCCL_CROSS_NIC", "2"}, {"NCCL_DEBUG", "WARN"}}, .gangs = true};

struct Example {
  std::string name;
  ProfileSet set;
  Json pod;
  std::string space;
};

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::filesystem::path Folder() { return RAILHEAD_SOURCE_DIR "/operator/testdata/admission"; }

std::vector<Example> Examples() {
  std::vector<Example> examples;
  for (const auto& entry : std::filesystem::directory_iterator(Folder())) {
    if (entry.path().extension() != ".yaml") continue;
    Example example;
    example.name = entry.path().stem();
    const absl::StatusOr<std::vector<Json>> documents = kube::ParseYaml(ReadFile(entry.path()));
    EXPECT_TRUE(documents.ok()) << entry.path() << documents.status();
    if (!documents.ok()) continue;
    for (const Json& document : *documents) {
      if (kube::StringAt(document, {"kind"}) == "Pod") {
        EXPECT_TRUE(example.pod.is_null()) << entry.path() << " has two pods";
        example.pod = document;
      } else {
        const absl::Status added = AddObject(document, example.set);
        EXPECT_TRUE(added.ok()) << entry.path() << added;
      }
    }
    example.space = kube::StringAt(example.pod, {"metadata", "namespace"});
    examples.push_back(std::move(example));
  }
  std::sort(examples.begin(), examples.end(),
            [](const Example& a, const Example& b) { return a.name < b.name; });
  return examples;
}

Mutation Mutate(const Example& example, const Json& pod) {
  return MutatePod(pod, kGoldenConfig, example.set, example.space);
}

TEST(GoldenTest, AnswersAreTheOnesWrittenDown) {
  int seen = 0;
  for (const Example& example : Examples()) {
    SCOPED_TRACE(example.name);
    const Mutation mutation = Mutate(example, example.pod);
    Json answer = {{"patch", mutation.patch}, {"warnings", mutation.warnings}};
    const std::string text =
        absl::StrReplaceAll(answer.dump(2), {{"\"" RAILHEAD_VERSION "\"", "\"VERSION\""}}) + "\n";
    const std::string expected = ReadFile(Folder() / (example.name + ".json"));
    if (text != expected) {
      const std::string actual = ::testing::TempDir() + "/" + example.name + ".json";
      std::ofstream(actual) << text;
      ADD_FAILURE() << "differs from what is written down; compare with " << actual;
    }
    ++seen;
  }
  EXPECT_GE(seen, 10);
}

// What a real API server would refuse in a pod that it accepted before.
void CheckValid(const Json& pod) {
  std::set<std::string> volumes;
  for (const Json& volume : pod["spec"].value("volumes", Json::array())) {
    EXPECT_TRUE(volumes.insert(volume.value("name", "")).second) << volume;
  }
  for (const char* list : {"initContainers", "containers"}) {
    for (const Json& container : pod["spec"].value(list, Json::array())) {
      std::set<std::string> names;
      for (const Json& variable : container.value("env", Json::array())) {
        EXPECT_TRUE(names.insert(variable.value("name", "")).second) << variable;
      }
      std::set<std::string> paths;
      for (const Json& mount : container.value("volumeMounts", Json::array())) {
        EXPECT_TRUE(paths.insert(mount.value("mountPath", "")).second) << mount;
        EXPECT_EQ(volumes.count(mount.value("name", "")), 1U) << mount;
      }
    }
  }
}

// Everything of `before` is still in `after`, in the same order within lists.
bool HoldsAll(const Json& after, const Json& before) {
  if (before.is_object()) {
    return after.is_object() &&
           std::all_of(before.items().begin(), before.items().end(), [&](const auto& member) {
             return after.contains(member.key()) && HoldsAll(after[member.key()], member.value());
           });
  }
  if (before.is_array()) {
    if (!after.is_array()) return false;
    auto at = after.begin();
    for (const Json& entry : before) {
      at = std::find_if(at, after.end(), [&](const Json& other) { return HoldsAll(other, entry); });
      if (at == after.end()) return false;
      ++at;
    }
    return true;
  }
  return after == before;
}

TEST(GoldenTest, PatchesOnlyAddAndOnceIsEnough) {
  for (const Example& example : Examples()) {
    SCOPED_TRACE(example.name);
    const Mutation mutation = Mutate(example, example.pod);
    for (const Json& operation : mutation.patch) EXPECT_EQ(operation["op"], "add");
    const Json after = example.pod.patch(mutation.patch);
    EXPECT_EQ(Mutate(example, after).patch, Json::array());
    CheckValid(after);
    // The user's word stands, but for the stamps that are not the user's to write.
    Json before = example.pod;
    if (before["metadata"].contains("annotations")) {
      before["metadata"]["annotations"].erase("railhead.io/profile");
      before["metadata"]["annotations"].erase("railhead.io/kept-environment");
    }
    EXPECT_TRUE(HoldsAll(after, before));
  }
}

// What the chart's admission policy makes of a pod before the webhook sees it, as
// tests/chart/policy_test.py compares it with the webhook's answer at a real API server.
Json AfterPolicy(const Json& pod, const std::string& space) {
  InjectionConfig config = kGoldenConfig;
  config.gangs = false;
  const Mutation mutation = MutatePod(pod, config, ProfileSet(), space);
  Json after = pod.patch(mutation.patch);
  if (mutation.outcome != Outcome::kMutated) return after;
  after["metadata"]["annotations"]["railhead.io/injected"] = RAILHEAD_VERSION "+policy";
  // It does not say what is not done.
  after["metadata"]["annotations"].erase(kNotDone);
  for (const char* list : {"initContainers", "containers"}) {
    if (!after["spec"].contains(list)) continue;
    for (Json& container : after["spec"][list]) {
      if (!container.contains("env")) continue;
      Json kept = Json::array();
      for (Json& variable : container["env"]) {
        if (variable["name"] != kNotDoneVariable) kept.push_back(std::move(variable));
      }
      container["env"] = std::move(kept);
    }
  }
  return after;
}

void SortVariables(Json& pod) {
  for (Json& container : pod["spec"]["containers"]) {
    if (container.contains("env")) std::sort(container["env"].begin(), container["env"].end());
  }
}

TEST(GoldenTest, WithThePolicyBeforeItPodsAreTheSame) {
  for (const Example& example : Examples()) {
    SCOPED_TRACE(example.name);
    Json alone = example.pod.patch(Mutate(example, example.pod).patch);
    const Json before = AfterPolicy(example.pod, example.space);
    Json after = before.patch(Mutate(example, before).patch);
    EXPECT_EQ(Mutate(example, after).patch, Json::array());
    // A variable of which the pod claims that it is its own is no longer known as one of ours,
    // after which others would come.
    if (example.name == "bad-annotations") {
      SortVariables(alone);
      SortVariables(after);
    }
    EXPECT_EQ(after, alone);
  }
}

}  // namespace
}  // namespace railhead::op
