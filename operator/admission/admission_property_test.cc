// SPDX-License-Identifier: Apache-2.0
//
// Admission by brute force: every set of fields of a profile that add something to a pod, over pods
// of many shapes. Nothing of the pod is lost, one call is enough, and what the fields add together
// is what each of them adds alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "operator/admission/mutation.h"

namespace railhead::op {
namespace {

using kube::Json;
using ::testing::IsEmpty;

enum Field : unsigned { kShm = 1, kRuntime = 2, kPlugin = 4, kSettings = 8, kAllFields = 15 };

ProfileSet WithFields(unsigned fields) {
  ProfileSet set;
  set.profiles.resize(1);
  RailProfile& profile = set.profiles.front();
  profile.name = "p";
  profile.namespaces.labels = {{"kubernetes.io/metadata.name", "team"}};
  if ((fields & kShm) != 0) profile.shared_memory_size = "1Gi";
  if ((fields & kRuntime) != 0) profile.inject.runtime_image = "runtime";
  if ((fields & kPlugin) != 0) {
    profile.inject.plugin_image = "plugin";
    profile.inject.plugin_library = "/l/libnccl-net-x.so";
  }
  if ((fields & kSettings) != 0) profile.settings = {{"nccl.trafficClass", "106"}};
  return set;
}

// Parts of a pod spec, each with what it may be; null: absent.
const std::vector<const char*> kVolumes = {
    nullptr,
    "null",
    "[]",
    R"([{"name": "data", "emptyDir": {}}])",
    R"([{"name": "railhead-shm", "hostPath": {"path": "/x"}}])",
    R"([{"name": "railhead-libraries", "hostPath": {"path": "/x"}}])"};
const std::vector<const char*> kMounts = {nullptr,
                                          "null",
                                          "[]",
                                          R"([{"name": "data", "mountPath": "/data"}])",
                                          R"([{"name": "data", "mountPath": "/dev/shm/"}])",
                                          R"([{"name": "data", "mountPath": "/opt/railhead"}])"};
const std::vector<const char*> kEnvironments = {
    nullptr, "null", R"([{"name": "A", "value": "b"}, {"name": "NCCL_DEBUG", "value": "INFO"}])"};
const std::vector<const char*> kInits = {nullptr, "null", "[]",
                                         R"([{"name": "first", "image": "x"}])",
                                         R"([{"name": "sidecar", "image": "x",
      "restartPolicy": "Always", "resources": {"limits": {"rdma/hca": "1"}}}])"};

void Set(Json& object, const char* member, const char* text) {
  if (text != nullptr) object[member] = Json::parse(text);
}

std::vector<Json> Pods() {
  std::vector<Json> pods;
  for (const char* volumes : kVolumes) {
    for (const char* mounts : kMounts) {
      for (const char* environment : kEnvironments) {
        for (const char* inits : kInits) {
          Json pod = Json::parse(R"({"metadata": {"name": "p", "labels": {"railhead.io/gang": "g"},
            "annotations": {"railhead.io/gang-size": "2"}}, "spec": {"containers": [
            {"name": "logs", "image": "y"},
            {"name": "main", "image": "x", "resources": {"limits": {"rdma/hca": "1"}}}]}})");
          Set(pod["spec"], "volumes", volumes);
          Set(pod["spec"]["containers"][1], "volumeMounts", mounts);
          Set(pod["spec"]["containers"][1], "env", environment);
          Set(pod["spec"], "initContainers", inits);
          pods.push_back(std::move(pod));
        }
      }
    }
  }
  return pods;
}

Mutation MutateWith(const Json& pod, unsigned fields) {
  const InjectionConfig config = {.environment = {{"NCCL_DEBUG", "WARN"}}, .gangs = true};
  return MutatePod(pod, config, WithFields(fields), "team");
}

// Everything of `before` is in `after`, in the same order within lists.
bool Keeps(const Json& after, const Json& before) {
  if (before.is_null()) return true;
  if (before.is_object()) {
    return after.is_object() &&
           std::all_of(before.items().begin(), before.items().end(), [&](const auto& member) {
             return after.contains(member.key()) && Keeps(after[member.key()], member.value());
           });
  }
  if (!before.is_array()) return after == before;
  if (!after.is_array()) return false;
  auto at = after.begin();
  for (const Json& entry : before) {
    at = std::find_if(at, after.end(), [&](const Json& other) { return Keeps(other, entry); });
    if (at == after.end()) return false;
    ++at;
  }
  return true;
}

// What a pod has of these lists, each entry as a text, by where it stands.
std::set<std::string> EntriesOf(const Json& pod) {
  std::set<std::string> entries;
  const auto add = [&entries](const std::string& where, const Json& object, const char* list) {
    if (!object.contains(list) || !object[list].is_array()) return;
    for (const Json& entry : object[list]) entries.insert(where + list + entry.value("name", ""));
  };
  const Json& spec = pod["spec"];
  add("", spec, "volumes");
  add("", spec, "initContainers");
  add("", spec, "schedulingGates");
  for (const char* list : {"initContainers", "containers"}) {
    if (!spec.contains(list) || !spec[list].is_array()) continue;
    for (const Json& container : spec[list]) {
      const std::string name = container.value("name", "") + ".";
      add(name, container, "env");
      add(name, container, "volumeMounts");
    }
  }
  return entries;
}

TEST(AdmissionPropertyTest, FieldsAddTogetherWhatEachAddsAlone) {
  for (const Json& pod : Pods()) {
    std::set<std::string> each;  // what a field alone adds
    for (const unsigned field : {kShm, kRuntime, kPlugin, kSettings}) {
      each.merge(EntriesOf(pod.patch(MutateWith(pod, field).patch)));
    }
    const Json together = pod.patch(MutateWith(pod, kAllFields).patch);
    ASSERT_EQ(EntriesOf(together), each) << pod << "\n" << together;
  }
}

TEST(AdmissionPropertyTest, NothingIsLostAndOnceIsEnough) {
  for (const Json& pod : Pods()) {
    for (unsigned fields = 0; fields <= kAllFields; ++fields) {
      const Json once = pod.patch(MutateWith(pod, fields).patch);
      ASSERT_TRUE(Keeps(once, pod)) << fields << pod << "\n" << once;
      ASSERT_THAT(MutateWith(once, fields).patch, IsEmpty()) << fields << pod;
      std::set<std::string> volumes;
      for (const Json& volume : once["spec"].value("volumes", Json::array())) {
        ASSERT_TRUE(volumes.insert(volume["name"]).second) << fields << once;
      }
      for (const Json& mount : once["spec"]["containers"][1].value("volumeMounts", Json::array())) {
        ASSERT_TRUE(volumes.contains(mount["name"]) || mount["name"] == "data") << fields << once;
      }
    }
  }
}

TEST(AdmissionPropertyTest, PodsOfOtherSystemsAreLeftAlone) {
  Json pod = Pods().front();
  pod["spec"]["os"]["name"] = "windows";
  const Mutation mutation = MutateWith(pod, kAllFields);
  EXPECT_EQ(mutation.outcome, Outcome::kUnchanged);
  EXPECT_THAT(mutation.warnings, ::testing::ElementsAre(::testing::HasSubstr("spec.os.name")));
  pod["spec"]["os"]["name"] = "linux";
  EXPECT_EQ(MutateWith(pod, kAllFields).outcome, Outcome::kMutated);
}

}  // namespace
}  // namespace railhead::op
