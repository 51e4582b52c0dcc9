// SPDX-License-Identifier: Apache-2.0
#include "operator/admission/mutation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "operator/objects/not_done.h"

namespace railhead::op {
namespace {

using kube::Json;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const InjectionConfig kConfig = {{{"NCCL_DEBUG", "WARN"}, {"NCCL_IB_TC", "106"}}, 29500};

// A pod as the Job controller makes it.
Json JobPod() {
  return Json::parse(R"({
    "apiVersion": "v1", "kind": "Pod",
    "metadata": {
      "generateName": "train-1-",
      "labels": {"batch.kubernetes.io/job-name": "train"},
      "annotations": {"batch.kubernetes.io/job-completion-index": "1",
                      "railhead.io/world-size": "2"}},
    "spec": {
      "hostname": "train-1", "subdomain": "ring",
      "containers": [
        {"name": "main", "image": "x", "resources": {"limits": {"rdma/hca": "2"}}}]}})");
}

// Without profiles.
Mutation StampJob(const Json& job) { return StampJob(job, kConfig); }

Mutation MutatePod(const Json& pod, const InjectionConfig& config) {
  return MutatePod(pod, config, ProfileSet(), "default");
}

Json Apply(const Json& object, const Mutation& mutation) { return object.patch(mutation.patch); }

std::vector<std::string> VariableNames(const Json& container) {
  std::vector<std::string> names;
  for (const Json& entry : container.value("env", Json::array())) names.push_back(entry["name"]);
  return names;
}

std::string ValueOf(const Json& container, const std::string& name) {
  for (const Json& entry : container.value("env", Json::array())) {
    if (entry["name"] == name) return entry.value("value", "(from a field)");
  }
  return "(absent)";
}

TEST(MutatePodTest, GivesAJobsPodItsWholeEnvironment) {
  const Mutation mutation = MutatePod(JobPod(), kConfig);
  EXPECT_EQ(mutation.outcome, Outcome::kMutated);
  EXPECT_THAT(mutation.warnings, IsEmpty());
  const Json pod = Apply(JobPod(), mutation);
  EXPECT_EQ(pod["spec"]["containers"][0]["env"], Json::parse(R"([
    {"name": "RANK", "value": "1"},
    {"name": "WORLD_SIZE", "value": "2"},
    {"name": "MASTER_ADDR", "value": "train-0.ring"},
    {"name": "MASTER_PORT", "value": "29500"},
    {"name": "RAILHEAD_JOB", "value": "train"},
    {"name": "RAILHEAD_POD",
     "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}},
    {"name": "RAILHEAD_NODE",
     "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "spec.nodeName"}}},
    {"name": "NCCL_DEBUG", "value": "WARN"},
    {"name": "NCCL_IB_TC", "value": "106"}])"));
  EXPECT_EQ(pod["metadata"]["annotations"], Json::parse(R"({
    "batch.kubernetes.io/job-completion-index": "1",
    "railhead.io/world-size": "2",
    "railhead.io/injected": ")" RAILHEAD_VERSION R"("})"));
}

TEST(MutatePodTest, LeavesPodsAloneThatDoNotAsk) {
  for (const char* resources :
       {"null", "{}", R"({"limits": null})", R"({"limits": {"cpu": "1"}})", R"({"limits": []})",
        R"({"limits": {"rdma/hca": "0"}, "requests": {"rdma/hca": 0}})",
        R"({"limits": {"rdma/hca": "0Mi"}})", R"({"limits": {"example.com/rdma": "1"}})",
        R"({"limits": {"rdma": "1"}})", R"("rdma/hca")"}) {
    Json pod = JobPod();
    pod["spec"]["containers"][0]["resources"] = Json::parse(resources);
    const Mutation mutation = MutatePod(pod, kConfig);
    EXPECT_EQ(mutation.outcome, Outcome::kIgnored) << resources;
    EXPECT_THAT(mutation.patch, IsEmpty());
    EXPECT_THAT(mutation.warnings, IsEmpty());
  }
}

TEST(MutatePodTest, AnyRdmaResourceInLimitsOrRequestsCounts) {
  for (const char* resources :
       {R"({"limits": {"rdma/hca": 1}})", R"({"requests": {"rdma/hca": "1"}})",
        R"({"limits": {"cpu": "1", "rdma/roce_gdr": "10"}})",
        R"({"limits": {"rdma/hca": "0"}, "requests": {"rdma/ib": "1k"}})"}) {
    Json pod = JobPod();
    pod["spec"]["containers"][0]["resources"] = Json::parse(resources);
    EXPECT_EQ(MutatePod(pod, kConfig).outcome, Outcome::kMutated) << resources;
  }
}

TEST(MutatePodTest, OnlyContainersThatAskChange) {
  Json pod = JobPod();
  const Json asking = pod["spec"]["containers"][0];
  const Json other = {{"name", "logs"}, {"image", "y"}, {"env", {{{"name", "A"}, {"value", "b"}}}}};
  pod["spec"]["containers"] = {other, asking};
  pod["spec"]["initContainers"] = {asking, other};
  const Json mutated = Apply(pod, MutatePod(pod, kConfig));
  EXPECT_EQ(mutated["spec"]["containers"][0], other);
  EXPECT_EQ(mutated["spec"]["initContainers"][1], other);
  EXPECT_EQ(ValueOf(mutated["spec"]["containers"][1], "RANK"), "1");
  EXPECT_EQ(ValueOf(mutated["spec"]["initContainers"][0], "RANK"), "1");
}

TEST(MutatePodTest, UserValuesWinAndAreReported) {
  Json pod = JobPod();
  pod["spec"]["containers"][0]["env"] = Json::parse(R"json([
    {"name": "NCCL_IB_TC", "value": "106"},
    {"name": "MINE", "value": "$(RANK)"},
    {"name": "MASTER_PORT", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}},
    {"name": "RAILHEAD_NODE", "value": ""}])json");
  const Json mutated = Apply(pod, MutatePod(pod, kConfig));
  const Json& container = mutated["spec"]["containers"][0];
  // Ours first, so that MINE may refer to RANK; theirs as they were.
  EXPECT_THAT(VariableNames(container),
              ElementsAre("RANK", "WORLD_SIZE", "MASTER_ADDR", "RAILHEAD_JOB", "RAILHEAD_POD",
                          "NCCL_DEBUG", "NCCL_IB_TC", "MINE", "MASTER_PORT", "RAILHEAD_NODE"));
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(container["env"][6 + i], pod["spec"]["containers"][0]["env"][i]);
  }
  EXPECT_EQ(mutated["metadata"]["annotations"]["railhead.io/kept-environment"],
            "MASTER_PORT,NCCL_IB_TC,RAILHEAD_NODE");
}

// The verdict must know whose choice it was; also where nobody else would set the variable.
TEST(MutatePodTest, ChoicesAgainstRdmaAreReportedAndOursAreNot) {
  Json pod = JobPod();
  pod["spec"]["containers"][0]["env"] = Json::parse(R"json([
    {"name": "NCCL_IB_DISABLE", "value": "1"},
    {"name": "NCCL_NET", "value": "Socket"},
    {"name": "NCCL_ALGO", "value": "Ring"}])json");
  InjectionConfig config = kConfig;
  config.environment["RAILHEAD_TRANSPORT"] = "tcp";
  Json mutated = Apply(pod, MutatePod(pod, config));
  const auto kept = [&] {
    return mutated["metadata"]["annotations"]["railhead.io/kept-environment"];
  };
  EXPECT_EQ(kept(), "NCCL_IB_DISABLE,NCCL_NET");
  // The second time as well, though RAILHEAD_TRANSPORT is there now.
  mutated = Apply(mutated, MutatePod(mutated, config));
  EXPECT_EQ(kept(), "NCCL_IB_DISABLE,NCCL_NET");
}

// A profile for the namespace train.
ProfileSet RdmaRequired() {
  ProfileSet profiles;
  RailProfile& profile = profiles.profiles.emplace_back();
  profile.name = "strict";
  profile.namespaces.labels = {{"kubernetes.io/metadata.name", "train"}};
  profile.require_rdma = RequireRdma::kFail;
  return profiles;
}

// A profile's NCCL_NET would exclude the network of a plugin that a container names itself.
TEST(MutatePodTest, APluginOfTheUsersKeepsItsNetwork) {
  const auto values_with = [](const char* env, const char* plugin_image,
                              const InjectionConfig& config = kConfig) {
    Json pod = JobPod();
    pod["spec"]["containers"][0]["env"] = Json::parse(env);
    ProfileSet profiles = RdmaRequired();
    profiles.profiles.front().inject.plugin_image = plugin_image;
    const Json once = Apply(pod, MutatePod(pod, config, profiles, "train"));
    EXPECT_EQ(MutatePod(once, config, profiles, "train").outcome, Outcome::kUnchanged);
    const Json container = once["spec"]["containers"][0];
    return ValueOf(container, "NCCL_NET_PLUGIN") + " " + ValueOf(container, "NCCL_NET");
  };
  const std::string ours = "/opt/railhead/nccl-net/libnccl-net-railhead.so";
  const char* const theirs = R"([{"name": "NCCL_NET_PLUGIN", "value": "ofi"}])";
  EXPECT_EQ(values_with("[]", ""), "(absent) IB");
  EXPECT_EQ(values_with("[]", "r.example/inject:1"), ours + " Railhead");
  EXPECT_EQ(values_with(theirs, ""), "ofi (absent)");
  EXPECT_EQ(values_with(theirs, "r.example/inject:1"), "ofi (absent)");
  // The administrator's value is for all pods.
  InjectionConfig config = kConfig;
  config.environment["NCCL_NET"] = "IBext";
  EXPECT_EQ(values_with(theirs, "", config), "ofi IB");
}

TEST(MutatePodTest, KeepsTheUsersScrapeAnnotations) {
  const auto annotations_with = [](const char* annotations) {
    Json pod = JobPod();
    pod["metadata"]["annotations"].update(Json::parse(annotations));
    return Apply(pod, MutatePod(pod, kConfig))["metadata"]["annotations"];
  };
  // A page of the user's own: our port would be wrong for it.
  Json annotations =
      annotations_with(R"({"prometheus.io/scrape": "true", "railhead.io/metrics-port": "9402"})");
  EXPECT_FALSE(annotations.contains("prometheus.io/port"));
  EXPECT_FALSE(annotations.contains("prometheus.io/path"));
  annotations = annotations_with(R"({"prometheus.io/scrape": "false"})");
  EXPECT_EQ(annotations["prometheus.io/scrape"], "false");
  annotations = annotations_with(R"({"railhead.io/metrics-port": "9500"})");
  EXPECT_EQ(annotations["prometheus.io/port"], "9500");
  EXPECT_EQ(annotations["prometheus.io/scrape"], "true");
  EXPECT_EQ(annotations["prometheus.io/path"], "/metrics");
  // Where nothing says that the container serves our page, it is no target.
  EXPECT_FALSE(annotations_with("{}").contains("prometheus.io/scrape"));
  for (const char* port : {"", "0", "http", "09402", "65536", "-1", "9402 "}) {
    annotations = annotations_with(Json{{"railhead.io/metrics-port", port}}.dump().c_str());
    EXPECT_FALSE(annotations.contains("prometheus.io/scrape")) << port;
  }
}

TEST(MutatePodTest, WorksWhereEverythingOptionalIsAbsentOrNull) {
  const char* container = R"({"name": "c", "resources": {"limits": {"rdma/hca": "1"}})";
  for (const std::string& metadata :
       {std::string(), std::string(R"("metadata": null,)"), std::string(R"("metadata": {},)"),
        std::string(R"("metadata": {"annotations": null},)"),
        std::string(R"("metadata": {"annotations": {}},)")}) {
    for (const std::string& env :
         {std::string("}"), std::string(R"(, "env": null})"), std::string(R"(, "env": []})")}) {
      const Json pod = Json::parse("{" + metadata + R"("spec": {"initContainers": null,
        "containers": [)" + container +
                                   env + "]}}");
      const Mutation mutation = MutatePod(pod, kConfig);
      ASSERT_EQ(mutation.outcome, Outcome::kMutated) << pod;
      const Json mutated = Apply(pod, mutation);
      EXPECT_THAT(VariableNames(mutated["spec"]["containers"][0]),
                  ElementsAre("RAILHEAD_POD", "RAILHEAD_NODE", "NCCL_DEBUG", "NCCL_IB_TC",
                              "RAILHEAD_NOT_DONE"));
      EXPECT_EQ(mutated["metadata"]["annotations"]["railhead.io/injected"], RAILHEAD_VERSION);
      EXPECT_EQ(MutatePod(mutated, kConfig).outcome, Outcome::kUnchanged);
    }
  }
}

TEST(MutatePodTest, FindsTheJobsNameByOwnerToo) {
  Json pod = JobPod();
  pod["metadata"].erase("labels");
  EXPECT_EQ(ValueOf(Apply(pod, MutatePod(pod, kConfig))["spec"]["containers"][0], "MASTER_ADDR"),
            "(absent)");
  pod["metadata"]["ownerReferences"] =
      Json::parse(R"([{"kind": "JobSet", "name": "no"}, {"kind": "Job", "name": "owner"}])");
  const Json container = Apply(pod, MutatePod(pod, kConfig))["spec"]["containers"][0];
  EXPECT_EQ(ValueOf(container, "MASTER_ADDR"), "owner-0.ring");
  EXPECT_EQ(ValueOf(container, "RAILHEAD_JOB"), "owner");
}

TEST(MutatePodTest, LeavesOutWhatItCannotKnow) {
  Json pod = JobPod();
  pod["spec"].erase("subdomain");
  EXPECT_EQ(ValueOf(Apply(pod, MutatePod(pod, kConfig))["spec"]["containers"][0], "MASTER_ADDR"),
            "(absent)");

  pod = JobPod();
  pod["metadata"]["annotations"].erase("railhead.io/world-size");
  Mutation mutation = MutatePod(pod, kConfig);
  EXPECT_THAT(mutation.warnings, ElementsAre(HasSubstr("no RANK or WORLD_SIZE")));
  for (const char* name : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) {
    EXPECT_THAT(VariableNames(Apply(pod, mutation)["spec"]["containers"][0]), Not(Contains(name)));
  }

  for (const char* stamp : {"", "1", "0", "-2", "2x", "99999999999", " 2"}) {
    pod = JobPod();
    pod["metadata"]["annotations"]["railhead.io/world-size"] = stamp;
    mutation = MutatePod(pod, kConfig);
    EXPECT_THAT(mutation.warnings, ElementsAre(HasSubstr("not a number greater than the rank")))
        << stamp;
    EXPECT_EQ(ValueOf(Apply(pod, mutation)["spec"]["containers"][0], "RANK"), "(absent)");
  }

  for (const char* index : {"", "x", "-1", "1.0", "99999999999"}) {
    pod = JobPod();
    pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] = index;
    mutation = MutatePod(pod, kConfig);
    EXPECT_THAT(mutation.warnings, ElementsAre(HasSubstr("no RANK"))) << index;
    EXPECT_THAT(VariableNames(Apply(pod, mutation)["spec"]["containers"][0]),
                Not(Contains("RANK")));
  }
}

// What could not be done is said in the pod, once, and the pod's containers read it there.
TEST(MutatePodTest, SaysWhatIsNotDone) {
  const auto note_of = [](Json pod) {
    const Json once = Apply(pod, MutatePod(pod, kConfig));
    EXPECT_EQ(MutatePod(once, kConfig).outcome, Outcome::kUnchanged);
    const std::string words = once["metadata"]["annotations"].value("railhead.io/not-done", "");
    const std::string note = FormatNotDone(ParseNotDone(words));
    for (const Json& container : once["spec"]["containers"]) {
      EXPECT_EQ(ValueOf(container, "RAILHEAD_NOT_DONE"), note.empty() ? "(absent)" : note);
    }
    return note;
  };
  EXPECT_EQ(note_of(JobPod()), "");
  Json pod = JobPod();
  pod["metadata"]["annotations"].erase("batch.kubernetes.io/job-completion-index");
  EXPECT_EQ(note_of(pod),
            "NoIndex: no RANK: the Job is not Indexed; set spec.completionMode to Indexed");
  // What the user sets is enough.
  Json& env = pod["spec"]["containers"][0]["env"];
  env = Json::parse(R"([{"name": "RANK", "value": "0"}])");
  EXPECT_THAT(note_of(pod), HasSubstr("HalfSet: container main sets RANK but not WORLD_SIZE; set"));
  env.push_back({{"name", "WORLD_SIZE"}, {"value", "1"}});
  EXPECT_EQ(note_of(pod), "");
  // That of another pod, out of whose YAML this one was made, is not of this one.
  pod["metadata"]["annotations"]["railhead.io/not-done"] = "NoIndex/NotIndexed";
  pod["metadata"]["annotations"]["railhead.io/injected"] = "1";
  env.push_back({{"name", "RAILHEAD_NOT_DONE"}, {"value", "NoIndex: x; y"}});
  const Json stale = Apply(pod, MutatePod(pod, kConfig));
  EXPECT_EQ(stale["metadata"]["annotations"]["railhead.io/not-done"], "");
  EXPECT_EQ(ValueOf(stale["spec"]["containers"][0], "RAILHEAD_NOT_DONE"), "");
  // Nobody who serves no gangs is silent about it.
  pod = JobPod();
  pod["metadata"]["labels"]["railhead.io/gang"] = "g";
  EXPECT_THAT(note_of(pod),
              HasSubstr("GangNotPossible: the pod does not wait for its gang: gangs are disabled"));
  EXPECT_THAT(MutatePod(pod, kConfig).warnings, ElementsAre(HasSubstr("does not wait")));
  // Without an address of rank 0.
  pod = JobPod();
  pod["spec"].erase("subdomain");
  EXPECT_THAT(note_of(pod), HasSubstr("NoAddress: no MASTER_ADDR: the pod has no subdomain; set"));
}

TEST(MutatePodTest, WarnsOfRdmaThatIsRequiredAndSwitchedOff) {
  Json pod = JobPod();
  pod["spec"]["containers"][0]["env"] = Json::parse(R"([
    {"name": "NCCL_IB_DISABLE", "value": "1"}])");
  ProfileSet profiles = RdmaRequired();
  EXPECT_THAT(MutatePod(pod, kConfig, profiles, "train").warnings,
              Contains(HasSubstr("sets NCCL_IB_DISABLE=1, and RailProfile strict has")));
  profiles.profiles.front().require_rdma = RequireRdma::kWarn;
  EXPECT_THAT(MutatePod(pod, kConfig, profiles, "train").warnings, IsEmpty());
}

TEST(MutatePodTest, WarnsThatEnvFromLoses) {
  Json pod = JobPod();
  pod["spec"]["containers"][0]["envFrom"] = Json::parse(R"([{"configMapRef": {"name": "c"}}])");
  EXPECT_THAT(MutatePod(pod, kConfig).warnings, ElementsAre(HasSubstr("container main: injected")));
}

TEST(MutatePodTest, UnderstandsWhatAnotherWebhookDidInBetween) {
  Json pod = Apply(JobPod(), MutatePod(JobPod(), kConfig));
  // Somebody adds a container and changes one of our values.
  for (Json& entry : pod["spec"]["containers"][0]["env"]) {
    if (entry["name"] == "NCCL_DEBUG") entry["value"] = "INFO";
  }
  Json sidecar = JobPod()["spec"]["containers"][0];
  sidecar["name"] = "late";
  pod["spec"]["containers"].push_back(sidecar);
  const Json again = Apply(pod, MutatePod(pod, kConfig));
  EXPECT_EQ(again["spec"]["containers"][0], pod["spec"]["containers"][0]);
  EXPECT_EQ(ValueOf(again["spec"]["containers"][1], "NCCL_DEBUG"), "WARN");
  EXPECT_EQ(again["metadata"]["annotations"]["railhead.io/kept-environment"], "NCCL_DEBUG");
  EXPECT_EQ(MutatePod(again, kConfig).outcome, Outcome::kUnchanged);
}

// A pod that the chart's admission policy has seen: ours of the configuration may be replaced by a
// profile's, and nobody else's.
TEST(MutatePodTest, CompletesWhatThePolicyBegan) {
  ProfileSet profiles;
  ASSERT_TRUE(AddObject(Json::parse(R"json({
    "apiVersion": "railhead.io/v1alpha1", "kind": "RailProfile",
    "metadata": {"name": "p", "generation": 1},
    "spec": {"fabric": "InfiniBand",
             "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "train"}},
             "nccl": {"debug": "INFO", "trafficClass": 96},
             "env": {"AAA": "$(RANK)", "OWN": "2"}}})json"),
                        profiles)
                  .ok());
  Json pod = JobPod();
  pod["metadata"]["annotations"]["railhead.io/injected"] = "0.1.0+policy";
  pod["metadata"]["annotations"]["railhead.io/kept-environment"] = "NCCL_IB_TC";
  pod["spec"]["containers"][0]["env"] = Json::parse(R"json([
    {"name": "RANK", "value": "1"},
    {"name": "WORLD_SIZE", "value": "2"},
    {"name": "NCCL_DEBUG", "value": "WARN"},
    {"name": "NCCL_IB_TC", "value": "106"},
    {"name": "OWN", "value": "2"}])json");
  const Json after = Apply(pod, MutatePod(pod, kConfig, profiles, "train"));
  const Json& container = after["spec"]["containers"][0];
  EXPECT_EQ(ValueOf(container, "NCCL_DEBUG"), "INFO");  // the policy's, replaced by the profile's
  EXPECT_EQ(ValueOf(container, "NCCL_IB_TC"), "106");   // the user's, as the policy noted
  EXPECT_EQ(VariableNames(container)[0], "RANK");       // what AAA refers to
  EXPECT_EQ(ValueOf(container, "AAA"), "$(RANK)");
  // The policy sets nothing that only a profile says, so it is the user's even where it is the
  // same.
  EXPECT_EQ(after["metadata"]["annotations"]["railhead.io/kept-environment"], "NCCL_IB_TC,OWN");
  EXPECT_EQ(after["metadata"]["annotations"]["railhead.io/injected"], RAILHEAD_VERSION);
}

TEST(MutatePodTest, NeverMakesAPodInvalid) {
  Json pod = JobPod();
  pod["metadata"]["annotations"]["large"] = std::string((256 << 10) - 80, 'x');
  const Mutation mutation = MutatePod(pod, kConfig);
  EXPECT_EQ(mutation.outcome, Outcome::kNotUnderstood);
  EXPECT_THAT(mutation.patch, IsEmpty());
  EXPECT_THAT(mutation.warnings, ElementsAre(HasSubstr("annotations leave no room")));
}

TEST(MutatePodTest, AdmitsUnchangedWhatIsNoPod) {
  for (const char* text :
       {"null", "7", "[]", "{}", R"({"spec": []})", R"({"spec": {"containers": {}}})",
        R"({"spec": {"initContainers": "x"}})"}) {
    const Mutation mutation = MutatePod(Json::parse(text), kConfig);
    EXPECT_EQ(mutation.outcome, Outcome::kNotUnderstood) << text;
    EXPECT_THAT(mutation.patch, IsEmpty());
    EXPECT_THAT(mutation.warnings, ElementsAre(HasSubstr("admitted unchanged")));
  }
  for (const char* damage : {R"({"metadata": []})", R"({"metadata": {"annotations": []}})",
                             R"({"metadata": {"annotations": {"a": 1}}})"}) {
    Json pod = JobPod();
    pod["metadata"] = Json::parse(damage)["metadata"];
    EXPECT_EQ(MutatePod(pod, kConfig).outcome, Outcome::kNotUnderstood) << damage;
  }
  Json pod = JobPod();
  pod["spec"]["containers"][0]["env"] = "text";
  EXPECT_EQ(MutatePod(pod, kConfig).outcome, Outcome::kNotUnderstood);
}

Json IndexedJob() {
  return Json::parse(R"({
    "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train"},
    "spec": {
      "completions": 2, "parallelism": 2, "completionMode": "Indexed",
      "template": {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"subdomain": "ring", "containers": [
          {"name": "main", "resources": {"limits": {"rdma/hca": "2"}}}]}}}})");
}

TEST(StampJobTest, WritesTheWorldSizeIntoTheTemplate) {
  const Mutation mutation = StampJob(IndexedJob());
  EXPECT_EQ(mutation.outcome, Outcome::kMutated);
  EXPECT_THAT(mutation.warnings, IsEmpty());
  Json expected = IndexedJob();
  expected["spec"]["template"]["metadata"]["annotations"]["railhead.io/world-size"] = "2";
  EXPECT_EQ(Apply(IndexedJob(), mutation), expected);
  EXPECT_EQ(StampJob(expected).outcome, Outcome::kUnchanged);
}

TEST(StampJobTest, WorksWithAndWithoutMetadata) {
  for (const char* metadata :
       {"null", "{}", R"({"annotations": null})", R"({"annotations": {"a/b~c": "d"}})"}) {
    Json job = IndexedJob();
    job["spec"]["template"]["metadata"] = Json::parse(metadata);
    const Json stamped = Apply(job, StampJob(job));
    EXPECT_EQ(stamped["spec"]["template"]["metadata"]["annotations"]["railhead.io/world-size"],
              "2");
  }
  Json job = IndexedJob();
  job["spec"]["template"].erase("metadata");
  EXPECT_EQ(StampJob(job).outcome, Outcome::kMutated);
}

TEST(StampJobTest, KeepsAStampOfTheUser) {
  Json job = IndexedJob();
  job["spec"]["template"]["metadata"]["annotations"]["railhead.io/world-size"] = "16";
  EXPECT_EQ(StampJob(job).outcome, Outcome::kUnchanged);
}

TEST(StampJobTest, WarnsOfRanksThatCannotMeet) {
  Json job = IndexedJob();
  job["spec"]["template"]["spec"].erase("subdomain");
  job["spec"]["parallelism"] = 1;
  EXPECT_THAT(StampJob(job).warnings,
              ElementsAre(HasSubstr("no MASTER_ADDR"), HasSubstr("only 1 of 2 pods")));
  job["spec"]["parallelism"] = 0;  // paused, as queues do
  EXPECT_THAT(StampJob(job).warnings, ElementsAre(HasSubstr("no MASTER_ADDR")));
  job["spec"]["completions"] = 1;
  EXPECT_THAT(StampJob(job).warnings, IsEmpty());

  job = IndexedJob();
  job["spec"].erase("completionMode");
  const Mutation mutation = StampJob(job);
  EXPECT_THAT(mutation.patch, IsEmpty());
  EXPECT_THAT(mutation.warnings, ElementsAre(HasSubstr("completionMode to Indexed")));
  job["spec"].erase("completions");
  job["spec"].erase("parallelism");
  EXPECT_THAT(StampJob(job).warnings, IsEmpty());
}

TEST(StampJobTest, LeavesOtherJobsAlone) {
  Json job = IndexedJob();
  job["spec"]["template"]["spec"]["containers"][0].erase("resources");
  EXPECT_EQ(StampJob(job).outcome, Outcome::kIgnored);
  for (const char* text : {"null", "{}", R"({"spec": {"template": 7}})",
                           R"({"spec": {"template": {"spec": {"containers": 7}}}})"}) {
    EXPECT_EQ(StampJob(Json::parse(text)).outcome, Outcome::kNotUnderstood) << text;
  }
}

// Makes objects of the right shape with wrong things in random places.
class Damage {
 public:
  explicit Damage(uint32_t seed) : random_(seed) {}

  Json Apply(Json object) {
    for (int hits = static_cast<int>(random_() % 4); hits >= 0; --hits) Hit(object);
    return object;
  }

 private:
  Json Junk() {
    static const std::vector<Json> kJunk = {
        nullptr,
        true,
        0,
        -1,
        1e300,
        "",
        "x",
        "0",
        "2",
        Json::array(),
        Json::object(),
        Json::array({1, nullptr, "x"}),
        Json::object({{"name", 7}}),
        Json::object({{"rdma/hca", "1"}}),
        Json::object({{"", ""}}),
        Json::object({{"a/b~c", "d"}, {"prometheus.io/port", "1"}})};
    return kJunk[random_() % kJunk.size()];
  }
  void Hit(Json& at) {
    if ((at.is_object() || at.is_array()) && !at.empty() && random_() % 5 != 0) {
      auto it = at.begin();
      std::advance(it, random_() % at.size());
      if (random_() % 6 == 0) {
        at.erase(it);
      } else {
        Hit(*it);
      }
      return;
    }
    at = Junk();
  }

  std::mt19937 random_;
};

// Whatever comes in: the patch applies, a second call has nothing to do, nothing else is lost, and
// what cannot be understood is left as it is.
TEST(MutationPropertyTest, PatchesAlwaysApplyAndOnceIsEnough) {
  Json rich_pod = JobPod();
  rich_pod["spec"]["initContainers"] = rich_pod["spec"]["containers"];
  rich_pod["spec"]["containers"][0]["env"] =
      Json::parse(R"([{"name": "NCCL_DEBUG", "value": "INFO"}, {"name": "A", "value": "b"}])");
  rich_pod["spec"]["containers"][0]["envFrom"] = Json::parse(R"([{"secretRef": {"name": "s"}}])");
  rich_pod["metadata"]["annotations"]["railhead.io/kept-environment"] = "Z, A,,B";
  rich_pod["spec"]["volumes"] = Json::parse(R"([{"name": "data", "emptyDir": {}}])");
  rich_pod["spec"]["containers"][0]["volumeMounts"] =
      Json::parse(R"([{"name": "data", "mountPath": "/data"}])");
  rich_pod["metadata"]["annotations"]["railhead.io/profile"] = "p@1";
  ProfileSet profiles;
  profiles.profiles.resize(1);
  profiles.profiles[0].name = "p";
  profiles.profiles[0].namespaces.labels = {{"kubernetes.io/metadata.name", "default"}};
  profiles.profiles[0].shared_memory_size = "1Gi";
  profiles.profiles[0].settings = {{"nccl.debug", "INFO"}, {"nccl.trafficClass", "106"}};
  Damage damage(7);
  int mutated = 0;
  int not_understood = 0;
  for (int i = 0; i < 30'000; ++i) {
    const bool is_job = i % 3 == 0;
    const Json object = damage.Apply(is_job ? IndexedJob() : i % 3 == 1 ? JobPod() : rich_pod);
    const auto mutate = [&](const Json& in) {
      return is_job ? StampJob(in)
                    : MutatePod(in, kConfig, i % 2 == 0 ? profiles : ProfileSet(), "default");
    };
    const Mutation once = mutate(object);
    ASSERT_EQ(once.outcome == Outcome::kMutated, !once.patch.empty()) << object;
    const Json result = object.patch(once.patch);  // throws, and fails, when it does not apply
    const Mutation twice = mutate(result);
    ASSERT_THAT(twice.patch, IsEmpty()) << object;
    for (const Json& operation : once.patch) ASSERT_EQ(operation["op"], "add");
    mutated += once.outcome == Outcome::kMutated ? 1 : 0;
    not_understood += once.outcome == Outcome::kNotUnderstood ? 1 : 0;
  }
  EXPECT_GT(mutated, 5'000);
  EXPECT_GT(not_understood, 1'000);
}

}  // namespace
}  // namespace railhead::op
