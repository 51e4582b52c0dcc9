// SPDX-License-Identifier: Apache-2.0
//
// A healthy cluster, as the API server has it, and what doctor says when one thing in it is wrong.
#include "cli/doctor/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/testing/finding_checks.h"
#include "cli/doctor/collect.h"
#include "cli/doctor/diagnose.h"
#include "cli/output/diagnosis.h"
#include "kube/auth/certificates.h"
#include "kube/client.h"
#include "kube/testing/hostile_texts.h"

namespace railhead::cli::doctor {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kSpace[] = "railhead-system";
constexpr char kVersion[] = "0.1.0";

absl::Time Now() { return absl::FromUnixSeconds(1'800'000'000); }

std::string Stamp(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", time, absl::UTCTimeZone());
}

json Labels(const char* component) {
  return {{"app.kubernetes.io/name", "railhead"},
          {"app.kubernetes.io/part-of", "railhead"},
          {"app.kubernetes.io/instance", "railhead"},
          {"app.kubernetes.io/component", component},
          {"app.kubernetes.io/version", kVersion}};
}

json Condition(const std::string& type, bool is_true, const std::string& message = "") {
  return {{"type", type}, {"status", is_true ? "True" : "False"}, {"message", message}};
}

json Rail(int rail) {
  return {{"rail", rail},
          {"device", absl::StrCat("mlx5_", rail)},
          {"linkLayer", "InfiniBand"},
          {"usable", true},
          {"reason", ""}};
}

json Node(const std::string& name) {
  const json facts = {{"version", 1},
                      {"rails", json::array({Rail(0), Rail(1)})},
                      {"gpus", json::array()},
                      {"gpuDirect", {{"way", "dmabuf"}, {"trouble", ""}}}};
  const json devices = {{"rdma/hca", "2"}, {"nvidia.com/gpu", "2"}};
  return {{"metadata",
           {{"name", name},
            {"labels",
             {{"kubernetes.io/hostname", name},
              {"railhead.io/gpus", "2"},
              {"railhead.io/gpudirect", "dmabuf"},
              {"railhead.io/memlock-bytes", "unlimited"}}},
            {"annotations", {{"railhead.io/node-facts", facts.dump()}}}}},
          {"status",
           {{"allocatable", devices},
            {"capacity", devices},
            {"conditions",
             json::array({Condition("Ready", true),
                          Condition("RailheadRailsReady", true, "all 2 rails carry data")})}}}};
}

json ComponentPod(const std::string& name, const char* component, const std::string& node) {
  return {{"metadata", {{"name", name}, {"namespace", kSpace}, {"labels", Labels(component)}}},
          {"spec",
           {{"nodeName", node},
            {"containers",
             json::array({{{"name", component},
                           {"image", absl::StrCat("railhead/", component, ":0.1.0")}}})}}},
          {"status",
           {{"phase", "Running"},
            {"conditions", json::array({Condition("Ready", true)})},
            {"containerStatuses", json::array({{{"restartCount", 0}}})}}}};
}

json TrainingPod(int index) {
  const std::string name = absl::StrCat("train-", index);
  return {
      {"metadata",
       {{"name", name},
        {"namespace", "team"},
        {"uid", absl::StrCat("uid-", index)},
        {"ownerReferences", json::array({{{"apiVersion", "batch/v1"},
                                          {"kind", "Job"},
                                          {"name", "train"},
                                          {"uid", "uid-job"},
                                          {"controller", true}}})}}},
      {"spec",
       {{"nodeName", absl::StrCat("n", index)},
        {"containers",
         json::array({{{"name", "main"},
                       {"resources",
                        {{"requests", {{"rdma/hca", "2"}}}, {"limits", {{"rdma/hca", "2"}}}}}}})}}},
      {"status", {{"phase", "Running"}}}};
}

kube::ObjectRef NodeRef(const std::string& name) { return {"v1", "nodes", "", name}; }
kube::ObjectRef PodRef(const std::string& space, const std::string& name) {
  return {"v1", "pods", space, name};
}
const kube::ObjectRef kDeployment = {"apps/v1", "deployments", kSpace, "railhead-operator"};
const kube::ObjectRef kDaemonSet = {"apps/v1", "daemonsets", kSpace, "railhead-device-plugin"};
const kube::ObjectRef kLease = {"coordination.k8s.io/v1", "leases", kSpace, "railhead-operator"};
const kube::ObjectRef kWebhook = {"admissionregistration.k8s.io/v1",
                                  "mutatingwebhookconfigurations", "", "railhead-system-railhead"};
const kube::ObjectRef kBinding = {"rbac.authorization.k8s.io/v1", "clusterrolebindings", "",
                                  "railhead-system-railhead-operator"};
const kube::ObjectRef kTopology = {"railhead.io/v1alpha1", "fabrictopologies", "", "cluster"};
const kube::ObjectRef kReport = {"railhead.io/v1alpha1", "railreports", "team", "job-train"};
kube::ObjectRef CrdRef(const std::string& plural) {
  return {"apiextensions.k8s.io/v1", "customresourcedefinitions", "",
          absl::StrCat(plural, ".railhead.io")};
}

// An API server that answers lists of all namespaces, and refuses some resources.
class Server final : public kube::Api {
 public:
  Server() {
    for (int i = 0; i < 2; ++i) {
      const std::string node = absl::StrCat("n", i);
      Put(NodeRef(node), Node(node));
      Put(PodRef(kSpace, "agent-" + node), ComponentPod("agent-" + node, "device-plugin", node));
      Put(PodRef("team", absl::StrCat("train-", i)), TrainingPod(i));
    }
    Put(PodRef(kSpace, "operator-0"), ComponentPod("operator-0", "operator", "n0"));
    Put(kDeployment,
        {{"metadata",
          {{"name", kDeployment.name}, {"namespace", kSpace}, {"labels", Labels("operator")}}},
         {"spec", {{"replicas", 1}}},
         {"status", {{"replicas", 1}, {"updatedReplicas", 1}, {"readyReplicas", 1}}}});
    Put(kDaemonSet,
        {{"metadata",
          {{"name", kDaemonSet.name}, {"namespace", kSpace}, {"labels", Labels("device-plugin")}}},
         {"status",
          {{"desiredNumberScheduled", 2},
           {"currentNumberScheduled", 2},
           {"updatedNumberScheduled", 2},
           {"numberReady", 2}}}});
    Put(kLease, {{"metadata",
                  {{"name", kLease.name}, {"namespace", kSpace}, {"labels", Labels("operator")}}},
                 {"spec",
                  {{"holderIdentity", "operator-0_1"},
                   {"leaseDurationSeconds", 15},
                   {"renewTime", "2027-01-15T07:59:59.123456Z"}}}});
    Trust(absl::Hours(24 * 365));
    Put(kBinding, {{"metadata", {{"name", kBinding.name}, {"labels", Labels("operator")}}},
                   {"subjects", json::array({{{"kind", "ServiceAccount"},
                                              {"name", "railhead-operator"},
                                              {"namespace", kSpace}}})}});
    for (const char* plural : {"railprofiles", "railreports", "fabrictopologies"}) {
      Put(CrdRef(plural),
          {{"metadata", {{"name", CrdRef(plural).name}, {"labels", Labels("operator")}}},
           {"status", {{"conditions", json::array({Condition("Established", true)})}}}});
    }
    Put(kTopology, {{"metadata", {{"name", "cluster"}}},
                    {"status",
                     {{"conditions",
                       json::array({Condition("Discovered", true), Condition("Consistent", true)})},
                      {"conflicts", json::array()},
                      {"conflictCount", 0}}}});
    Put({"railhead.io/v1alpha1", "railprofiles", "", "ib"},
        {{"apiVersion", "railhead.io/v1alpha1"},
         {"kind", "RailProfile"},
         {"metadata", {{"name", "ib"}, {"generation", 1}}},
         {"spec",
          {{"fabric", "InfiniBand"}, {"namespaceSelector", {{"matchLabels", {{"team", "a"}}}}}}},
         {"status",
          {{"observedGeneration", 1},
           {"conditions",
            json::array({Condition("Accepted", true), Condition("Conflicts", false)})}}}});
    Report("None", json::array());
  }

  void Put(const kube::ObjectRef& ref, json object) {
    objects_[ref.Path()] = {kube::ObjectRef{ref.api, ref.resource, ref.space, ""}.Path(),
                            kube::ObjectRef{ref.api, ref.resource, "", ""}.Path(),
                            std::move(object)};
  }
  void Remove(const kube::ObjectRef& ref) { objects_.erase(ref.Path()); }
  json& At(const kube::ObjectRef& ref) { return objects_.at(ref.Path()).object; }

  // A webhook with an authority of a year that is as old as that.
  void Trust(absl::Duration left) {
    const auto authority = kube::MakeAuthority("railhead", Now() - absl::Hours(24 * 365) + left,
                                               absl::Hours(24 * 365));
    EXPECT_TRUE(authority.ok()) << authority.status();
    json webhooks = json::array();
    for (const char* name : {"pods.railhead.io", "jobs.railhead.io"}) {
      webhooks.push_back({{"name", name},
                          {"failurePolicy", "Ignore"},
                          {"clientConfig",
                           {{"caBundle", absl::Base64Escape(authority->certificate)},
                            {"service", {{"namespace", kSpace}, {"name", "railhead-operator"}}}}}});
    }
    Put(kWebhook, {{"metadata", {{"name", kWebhook.name}, {"labels", Labels("operator")}}},
                   {"webhooks", webhooks}});
  }
  void Report(const std::string& severity, json reasons) {
    Put(kReport,
        {{"metadata",
          {{"name", kReport.name},
           {"namespace", "team"},
           {"ownerReferences",
            json::array({{{"kind", "Job"}, {"name", "train"}, {"uid", "uid-job"}}})}}},
         {"status", {{"severity", severity}, {"pods", 2}, {"reasons", std::move(reasons)}}}});
  }
  void Event(const std::string& kind, const std::string& space, const std::string& name,
             bool warning, const std::string& reason, const std::string& message,
             absl::Time at = Now()) {
    const std::string source = kind == "Node" || reason == "HcasNotNearest"
                                   ? "railhead-device-plugin"
                                   : "railhead-operator";
    Put({"v1", "events", space.empty() ? "default" : space, absl::StrCat(name, ".", reason)},
        {{"metadata", {{"name", absl::StrCat(name, ".", reason)}}},
         {"involvedObject", {{"kind", kind}, {"namespace", space}, {"name", name}}},
         {"type", warning ? "Warning" : "Normal"},
         {"reason", reason},
         {"message", message},
         {"source", {{"component", source}}},
         {"lastTimestamp", Stamp(at)}});
  }
  // Rails of a node that are down, as its agent writes it.
  void Break(const std::string& node, int rail, const std::string& reason) {
    json& object = At(NodeRef(node));
    json facts =
        json::parse(object["metadata"]["annotations"]["railhead.io/node-facts"].get<std::string>());
    facts["rails"][rail]["usable"] = false;
    facts["rails"][rail]["reason"] = reason;
    object["metadata"]["annotations"]["railhead.io/node-facts"] = facts.dump();
    object["status"]["conditions"][1] = Condition(
        "RailheadRailsReady", false,
        absl::StrCat("1 of 2 rails carry data; rail ", rail, " (mlx5_", rail, "): ", reason));
    object["status"]["allocatable"]["rdma/hca"] = "1";
  }

  absl::StatusOr<kube::Json> Call(const kube::ApiRequest& request) override {
    ++calls;
    if (!outage.ok()) return outage;
    const std::string path = request.path.substr(0, request.path.find('?'));
    const std::string resource = path.substr(path.rfind('/') + 1);
    if (denied.contains(resource)) return absl::PermissionDeniedError("forbidden");
    json items = json::array();
    for (const auto& [key, stored] : objects_) {
      if (stored.collection != path && stored.everywhere != path) continue;
      if (Selects(request.path, stored.object)) items.push_back(stored.object);
    }
    // Two objects a page.
    size_t from = 0;
    if (const size_t at = request.path.find("continue="); at != std::string::npos) {
      from = std::stoul(request.path.substr(at + 9));
    }
    json page = {{"metadata", {{"resourceVersion", "1"}}}, {"items", json::array()}};
    for (size_t i = from; i < items.size() && i < from + 2; ++i) page["items"].push_back(items[i]);
    if (from + 2 < items.size()) page["metadata"]["continue"] = std::to_string(from + 2);
    return page;
  }
  absl::Status Stream(const kube::StreamRequest&,
                      const std::function<absl::Status(absl::string_view)>&) override {
    return absl::UnimplementedError("watch");
  }

  std::set<std::string> denied;  // resources
  absl::Status outage;
  int calls = 0;

 private:
  struct Stored {
    std::string collection;  // path, in the object's namespace
    std::string everywhere;  // in all
    json object;
  };

  static bool Selects(const std::string& query, const json& object) {
    const json labels = object["metadata"].value("labels", json::object());
    if (absl::StrContains(query, "part-of%3Drailhead") &&
        labels.value("app.kubernetes.io/part-of", "") != "railhead") {
      return false;
    }
    if (absl::StrContains(query, "name%3Drailhead") && !absl::StrContains(query, "part-of") &&
        labels.value("app.kubernetes.io/name", "") != "railhead") {
      return false;
    }
    if (const size_t at = query.find("source%3D"); at != std::string::npos) {
      return object["source"]["component"] == query.substr(at + 9, query.find('&', at) - at - 9);
    }
    if (const size_t at = query.find("nodeName%3D"); at != std::string::npos) {
      return object["spec"].value("nodeName", "") ==
             query.substr(at + 11, query.find('&', at) - at - 11);
    }
    return true;
  }

  std::map<std::string, Stored> objects_;  // by path
};

class DoctorTest : public ::testing::Test {
 protected:
  // The exit status; the answer is in `answer_`.
  int Run(const Scope& scope = {}) {
    std::ostringstream out;
    std::ostringstream err;
    const int status = RunDoctor({scope, true, false, kVersion}, server_, Now, out, err);
    error_ = err.str();
    answer_ = json::parse(out.str(), nullptr, false);
    if (answer_.is_object()) ExpectWholeFindings();
    return status;
  }
  std::string Text() {
    std::ostringstream out;
    std::ostringstream err;
    RunDoctor({{}, false, false, kVersion}, server_, Now, out, err);
    return out.str();
  }
  void ExpectWholeFindings() const {
    for (const json& finding : answer_["findings"]) {
      const std::string verdict = finding["verdict"];
      const Severity severity = verdict == "pass"   ? Severity::kOk
                                : verdict == "warn" ? Severity::kWarn
                                                    : Severity::kFail;
      EXPECT_EQ(finding["severity"], std::string(SeverityName(severity)));
      EXPECT_EQ(finding["cause"], finding["observed"]);
      ExpectWhole(
          {severity, finding["check"], finding["object"], finding["observed"], finding["fix"]});
    }
  }
  // Those that are no pass.
  json Findings() const {
    json found = json::array();
    for (const json& finding : answer_["findings"]) {
      if (finding["verdict"] != "pass") found.push_back(finding);
    }
    return found;
  }

  Server server_;
  json answer_;
  std::string error_;
};

TEST_F(DoctorTest, AHealthyClusterPassesAllChecks) {
  EXPECT_EQ(Run(), kAllPass) << Findings().dump(1);
  EXPECT_EQ(Findings(), json::array());
  std::set<std::string> passed;
  for (const json& finding : answer_["findings"])
    passed.insert(finding["check"].get<std::string>());
  for (const Check& check : Checks())
    EXPECT_TRUE(passed.contains(std::string(check.name))) << check.name;
  EXPECT_EQ(answer_["result"], "pass");
  EXPECT_EQ(answer_["counts"]["pass"], Checks().size());
}

json MemberOfGang(int index, int size) {
  json pod = TrainingPod(index);
  pod["metadata"]["name"] = absl::StrCat("gang-", index);
  pod["metadata"]["uid"] = absl::StrCat("uid-gang-", index);
  pod["metadata"]["labels"] = {{"railhead.io/gang", "big"}};
  pod["metadata"]["annotations"] = {{"railhead.io/gang-size", absl::StrCat(size)}};
  pod["metadata"].erase("ownerReferences");
  pod["spec"]["schedulingGates"] = json::array({{{"name", "railhead.io/gang"}}});
  pod["spec"].erase("nodeName");
  pod["status"] = {{"phase", "Pending"}};
  return pod;
}

void PutGang(Server& server, int pods, int size) {
  for (int i = 0; i < pods; ++i) {
    server.Put(PodRef("team", absl::StrCat("gang-", i)), MemberOfGang(i, size));
  }
}

json Waiting(const char* reason, const char* message) {
  return json::array({{{"restartCount", 7},
                       {"state", {{"waiting", {{"reason", reason}, {"message", message}}}}}}});
}

json ReasonOf(const char* reason, const char* fix) {
  return {{"reason", reason},
          {"severity", "Warning"},
          {"pods", 1},
          {"examples", json::array({"train-1"})},
          {"fix", fix}};
}

struct Fault {
  const char* name;
  std::function<void(Server&)> happen;
  const char* verdict;
  const char* check;
  const char* object;
  const char* cause;
  const char* fix;
};

const Fault kFaults[] = {
    {"a right is missing", [](Server& s) { s.denied = {"daemonsets"}; }, "warn", "rights", "",
     "no permission to list daemonsets.apps in namespace railhead-system",
     "kubectl auth can-i list daemonsets.apps -n railhead-system"},
    {"nothing is installed",
     [](Server& s) {
       s.Remove(kDeployment);
       s.Remove(kDaemonSet);
       s.Remove(kWebhook);
       s.Remove(kBinding);
       for (const char* pod : {"operator-0", "agent-n0", "agent-n1"}) s.Remove(PodRef(kSpace, pod));
     },
     "fail", "install", "", "Railhead is not installed", "helm install railhead"},
    {"the agents' DaemonSet is gone", [](Server& s) { s.Remove(kDaemonSet); }, "fail", "install",
     "", "no node offers rdma/*", "--reset-then-reuse-values"},
    {"a kind is missing", [](Server& s) { s.Remove(CrdRef("railreports")); }, "fail", "crds",
     "crd railreports.railhead.io", "missing", "profiles.crd=true"},
    {"the topology's kind is missing", [](Server& s) { s.Remove(CrdRef("fabrictopologies")); },
     "fail", "crds", "crd fabrictopologies.railhead.io", "missing", "operator.topology.crd=true"},
    {"the operator's image cannot be pulled",
     [](Server& s) {
       json& status = s.At(PodRef(kSpace, "operator-0"))["status"];
       status["conditions"][0]["status"] = "False";
       status["containerStatuses"] = Waiting("ImagePullBackOff", "Back-off pulling image");
     },
     "fail", "operator", "pod railhead-system/operator-0", "ImagePullBackOff",
     "correct the image's registry and tag"},
    {"the operator is scaled to 0", [](Server& s) { s.At(kDeployment)["spec"]["replicas"] = 0; },
     "fail", "operator", "deployment/railhead-operator", "scaled to 0", "operator.replicas"},
    {"nobody leads", [](Server& s) { s.At(kLease)["spec"]["holderIdentity"] = ""; }, "fail",
     "leader", "lease railhead-system/railhead-operator", "no replica of the operator leads",
     "logs -l app.kubernetes.io/component=operator"},
    {"the leader has stopped",
     [](Server& s) { s.At(kLease)["spec"]["renewTime"] = "2027-01-15T07:50:00.000000Z"; }, "fail",
     "leader", "lease", "has not renewed it since 2027-01-15 07:50 UTC", "logs"},
    {"the webhook's bundle was reset",
     [](Server& s) { s.At(kWebhook)["webhooks"][0]["clientConfig"].erase("caBundle"); }, "fail",
     "webhook", "mutatingwebhookconfiguration", "start without ranks and environment",
     "exclude that field"},
    {"the webhook's certificate has expired", [](Server& s) { s.Trust(-absl::Hours(1)); }, "fail",
     "webhook", "mutatingwebhookconfiguration", "expired at 2027-01-15 07:00 UTC", "logs"},
    {"the webhook's certificate is not renewed", [](Server& s) { s.Trust(absl::Hours(48)); },
     "warn", "webhook", "mutatingwebhookconfiguration", "expires at 2027-01-17 08:00 UTC", "logs"},
    {"the webhook is gone", [](Server& s) { s.Remove(kWebhook); }, "fail", "webhook", "",
     "MutatingWebhookConfiguration is missing", "helm upgrade"},
    {"an agent crashes",
     [](Server& s) {
       s.At(PodRef(kSpace, "agent-n1"))["status"]["containerStatuses"] =
           Waiting("CrashLoopBackOff", "back-off 5m0s");
     },
     "fail", "agents", "node n1, pod railhead-system/agent-n1", "CrashLoopBackOff",
     "kubectl -n railhead-system logs agent-n1 --previous"},
    {"an SCC refuses the agents",
     [](Server& s) { s.At(kDaemonSet)["status"]["currentNumberScheduled"] = 0; }, "fail", "agents",
     "daemonset/railhead-device-plugin", "0 of 2 pods exist", "describe daemonset/"},
    {"versions are apart",
     [](Server& s) {
       s.At(CrdRef("railreports"))["metadata"]["labels"]["app.kubernetes.io/version"] = "0.0.9";
     },
     "warn", "versions", "", "0.0.9: crd railreports.railhead.io; 0.1.0: ",
     // --reuse-values would leave out the defaults of values that are new in the chart.
     "--reset-then-reuse-values"},
    {"a profile is refused",
     [](Server& s) {
       s.At({"railhead.io/v1alpha1", "railprofiles", "", "ib"})["spec"]["fabric"] = "Infini";
     },
     "fail", "profiles", "railprofile ib", "fabric", "kubectl edit railprofile ib"},
    {"a port is down", [](Server& s) { s.Break("n1", 1, "port 1 is DOWN"); }, "fail", "nodes",
     "node n1", "rail 1 (mlx5_1): port 1 is DOWN", "repair the cable, NIC or switch port"},
    {"a RoCE port has lost its address",
     [](Server& s) { s.Break("n0", 0, "the RoCE port has no routable address; give eth1 one"); },
     "fail", "nodes", "node n0", "no routable address", "repair"},
    {"RDMA is not detected",
     [](Server& s) {
       for (const char* node : {"n0", "n1"}) {
         json object = Node(node);
         object["metadata"].erase("annotations");
         object["status"] = {{"conditions", json::array({Condition("Ready", true)})}};
         s.Put(NodeRef(node), object);
       }
     },
     "fail", "nodes", "", "no RDMA device was detected", "railhead-device-plugin discover"},
    {"the agent refuses its configuration",
     [](Server& s) {
       s.Event("Node", "", "n0", true, "ConfigurationRefused",
               "resources[0].nam: did you mean name?");
     },
     "warn", "nodes", "node n0", "did you mean name?", "kubectl describe node n0"},
    {"the kubelet does not know the agent",
     [](Server& s) {
       s.At(NodeRef("n1"))["status"].erase("capacity");
       s.At(NodeRef("n1"))["status"].erase("allocatable");
     },
     "fail", "devices", "node n1", "has 2 usable rails and offers no rdma/*", "logs agent-n1"},
    {"a device is unhealthy",
     [](Server& s) { s.At(NodeRef("n1"))["status"]["allocatable"]["rdma/hca"] = "1"; }, "warn",
     "devices", "node n1", "1 of 2 rdma/hca healthy", "logs agent-n1"},
    {"a resource has been renamed",
     [](Server& s) {
       json& status = s.At(NodeRef("n1"))["status"];
       status["capacity"]["rdma/old"] = "2";
       status["allocatable"]["rdma/old"] = "0";
     },
     "warn", "devices", "node n1", "0 of 2 rdma/old healthy", "removes it within 5 minutes"},
    {"NICs are far from the GPUs",
     [](Server& s) {
       s.Event("Pod", "team", "train-0", true, "HcasNotNearest", "mlx5_1 is at another socket");
     },
     "warn", "devices", "pod team/train-0", "another socket", "topologyManagerPolicy"},
    {"GPUDirect does not work",
     [](Server& s) {
       json& metadata = s.At(NodeRef("n1"))["metadata"];
       metadata["labels"]["railhead.io/gpudirect"] = "none";
     },
     "warn", "gpudirect", "node n1", "through host memory", "nvidia_peermem"},
    {"containers can pin only too little",
     [](Server& s) {
       s.At(NodeRef("n1"))["metadata"]["labels"]["railhead.io/memlock-bytes"] = "8388608";
     },
     "warn", "memlock", "node n1", "8192 KiB", "devicePlugin.memlock"},
    {"a cable is wrong",
     [](Server& s) {
       json& status = s.At(kTopology)["status"];
       status["conditions"][1] = Condition("Consistent", false, "1 conflict");
       status["conflicts"] = json::array({{{"message", "miswired: mlx5_1 of n1: move the cable"}}});
       status["conflictCount"] = 1;
     },
     "fail", "topology", "fabrictopology cluster", "move the cable", "railhead topology"},
    {"more cables are wrong than are listed",
     [](Server& s) {
       json& status = s.At(kTopology)["status"];
       status["conditions"][1] = Condition("Consistent", false, "21 conflicts");
       status["conflicts"] = json::array({{{"message", "miswired: mlx5_1 of n1: move the cable"}}});
       status["conflictCount"] = 21;
     },
     "fail", "topology", "fabrictopology cluster", "20 more conflicts", "railhead topology"},
    {"a gang lacks pods", [](Server& s) { PutGang(s, 1, 2); }, "warn", "gangs", "gang team/big",
     "1 pod of 2 wait: ", "railhead why big -n team"},
    {"a gang has no room",
     [](Server& s) {
       PutGang(s, 2, 2);
       s.Event("Pod", "team", "gang-0", false, "GangWaiting", "room for 1 of 2 pods",
               Now() - absl::Minutes(1));
       // Later ones that are not about the gang.
       s.Event("Pod", "team", "gang-0", false, "VariablesAdded", "something else");
       s.Event("Pod", "other", "gang-0", false, "GangBlocked", "a pod of another namespace");
     },
     "warn", "gangs", "gang team/big", "room for 1 of 2 pods", "railhead why big -n team"},
    {"a gang is blocked",
     [](Server& s) {
       PutGang(s, 2, 2);
       s.Event("Pod", "team", "gang-0", true, "GangBlocked", "another gate holds gang-0");
     },
     "fail", "gangs", "gang team/big", "another gate", "railhead why big -n team"},
    {"TCP runs in place of RDMA",
     [](Server& s) {
       s.Report("Warning", json::array({ReasonOf("RdmaNotUsed", "repair what is named there")}));
     },
     "fail", "jobs", "job team/train", "RdmaNotUsed: 1 of 2 pods, train-1",
     "repair what is named there"},
    {"a pod got fewer rails",
     [](Server& s) {
       s.Report("Warning", json::array({ReasonOf("RdmaRailsNotGiven", "see the agent")}));
     },
     "fail", "jobs", "job team/train", "RdmaRailsNotGiven", "see the agent"},
    {"a rank hangs",
     [](Server& s) {
       s.Report("Warning", json::array({ReasonOf("RuntimeSilent", "see that it runs")}));
     },
     "fail", "jobs", "job team/train", "RuntimeSilent", "see that it runs"},
    {"a resource's name is wrong",
     [](Server& s) {
       json pod = TrainingPod(0);
       json& resources = pod["spec"]["containers"][0]["resources"];
       resources["requests"] = {{"rdma/hcas", "2"}};
       resources["limits"] = resources["requests"];
       pod["spec"].erase("nodeName");
       json condition = Condition("PodScheduled", false, "0/2 nodes: 2 Insufficient rdma/hcas.");
       condition["reason"] = "Unschedulable";
       condition["lastTransitionTime"] = Stamp(Now() - absl::Hours(1));
       pod["status"] = {{"phase", "Pending"}, {"conditions", json::array({condition})}};
       s.Put(PodRef("team", "train-0"), pod);
     },
     "fail", "jobs", "job team/train", "RdmaResourceUnknown: pod train-0: no node offers rdma/hcas",
     "correct the resource's name"},
    {"a resource's name is wrong where the operator's configuration lists others",
     [](Server& s) {
       s.Put({"v1", "configmaps", kSpace, "railhead-operator"},
             {{"metadata",
               {{"name", "railhead-operator"},
                {"namespace", kSpace},
                {"labels", Labels("operator")}}},
              {"data", {{"operator.yaml", "rdmaResources: [rdma/*, nvidia.com/hostdev*]\n"}}}});
       json pod = TrainingPod(0);
       json& resources = pod["spec"]["containers"][0]["resources"];
       resources["requests"] = {{"nvidia.com/hostdevs", "2"}};
       resources["limits"] = resources["requests"];
       pod["spec"].erase("nodeName");
       json condition =
           Condition("PodScheduled", false, "0/2: 2 Insufficient nvidia.com/hostdevs.");
       condition["reason"] = "Unschedulable";
       condition["lastTransitionTime"] = Stamp(Now() - absl::Hours(1));
       pod["status"] = {{"phase", "Pending"}, {"conditions", json::array({condition})}};
       s.Put(PodRef("team", "train-0"), pod);
     },
     "fail", "jobs", "job team/train",
     "RdmaResourceUnknown: pod train-0: no node offers nvidia.com/hostdevs",
     "correct the resource's name"},
    {"a user has switched RDMA off",
     [](Server& s) {
       s.At(PodRef("team", "train-0"))["spec"]["containers"][0]["env"] =
           json::array({{{"name", "NCCL_IB_DISABLE"}, {"value", "1"}}});
     },
     "fail", "jobs", "job team/train", "RdmaDisabledByUser", "remove the variable"},
};

TEST_F(DoctorTest, EachFaultIsNamedWithItsFix) {
  for (const Fault& fault : kFaults) {
    SCOPED_TRACE(fault.name);
    server_ = Server();
    fault.happen(server_);
    EXPECT_EQ(Run(), std::string(fault.verdict) == "fail" ? kFailed : kWarned)
        << Findings().dump(1);
    bool named = false;
    for (const json& finding : Findings()) {
      named = named || (finding["verdict"] == fault.verdict && finding["check"] == fault.check &&
                        absl::StrContains(finding["object"].get<std::string>(), fault.object) &&
                        absl::StrContains(finding["cause"].get<std::string>(), fault.cause) &&
                        absl::StrContains(finding["fix"].get<std::string>(), fault.fix));
    }
    EXPECT_TRUE(named) << Findings().dump(1);
  }
}

// Whether a finding that is no pass has this check and cause.
bool Names(const json& findings, const std::string& check, const std::string& cause) {
  for (const json& finding : findings) {
    if (finding["check"] == check && absl::StrContains(finding["cause"].get<std::string>(), cause))
      return true;
  }
  return false;
}

TEST_F(DoctorTest, WhatIsOverIsNotTold) {
  server_.Event("Node", "", "n0", true, "ConfigurationRefused", "wrong", Now() - absl::Hours(1));
  server_.Event("Node", "", "n0", false, "ConfigurationTaken", "right");
  server_.Event("Node", "", "n1", true, "RailDown", "rail 0");
  EXPECT_EQ(Run(), kAllPass) << Findings().dump(1);
}

// The agent reports both within a second of each other.
TEST_F(DoctorTest, AWarningAboutAConfigurationIsNotHiddenByItsAnnouncement) {
  server_.Event("Node", "", "n0", false, "ConfigurationTaken", "1 resources");
  server_.Event("Node", "", "n0", true, "ResourceWithoutHcas", "rdma/hca gets no HCA of this node");
  EXPECT_EQ(Run(), kWarned) << Findings().dump(1);
  EXPECT_TRUE(Names(Findings(), "nodes", "ResourceWithoutHcas: rdma/hca gets no HCA"))
      << Findings().dump(1);
  // One event had to be created, the other one only to be counted.
  json& taken = server_.At({"v1", "events", "default", "n0.ConfigurationTaken"});
  taken["metadata"]["creationTimestamp"] = Stamp(Now() + absl::Seconds(5));
  EXPECT_EQ(Run(), kWarned) << Findings().dump(1);
  server_.Event("Node", "", "n0", false, "ConfigurationTaken", "1 resources",
                Now() + absl::Seconds(1));
  EXPECT_EQ(Run(), kAllPass) << Findings().dump(1);
}

TEST_F(DoctorTest, NodesAndPodsThatAreGoneAreNotTold) {
  server_.Event("Node", "", "gone", true, "ConfigurationRefused", "wrong");
  server_.Event("Pod", "team", "gone-0", true, "HcasNotNearest", "mlx5_1 is at another socket");
  json evicted = ComponentPod("operator-evicted", "operator", "n0");
  evicted["status"] = {{"phase", "Failed"}, {"reason", "Evicted"}};
  server_.Put(PodRef(kSpace, "operator-evicted"), evicted);
  EXPECT_EQ(Run(), kAllPass) << Findings().dump(1);
}

TEST_F(DoctorTest, WhatTheOperatorHasReportedIsToldOnce) {
  server_.At(PodRef("team", "train-0"))["spec"]["containers"][0]["env"] =
      json::array({{{"name", "NCCL_IB_DISABLE"}, {"value", "1"}}});
  server_.Report("Warning",
                 json::array({ReasonOf("RdmaDisabledByUser", "remove the variable from the pod")}));
  EXPECT_EQ(Run(), kFailed);
  EXPECT_EQ(Findings().size(), 1) << Findings().dump(1);
}

TEST_F(DoctorTest, ANodeIsLookedAtAlone) {
  server_.Break("n1", 0, "port 1 is DOWN");
  EXPECT_EQ(Run({Scope::Kind::kNode, "", "n0"}), kAllPass) << Findings().dump(1);
  EXPECT_EQ(Run({Scope::Kind::kNode, "", "n1"}), kFailed);
  EXPECT_EQ(answer_["scope"]["kind"], "node");
  EXPECT_EQ(Run({Scope::Kind::kNode, "", "n2"}), kFailed);
  EXPECT_THAT(error_, HasSubstr("there is no node n2"));
}

TEST_F(DoctorTest, AJobIsLookedAtWithItsNodes) {
  server_.Break("n1", 0, "port 1 is DOWN");
  EXPECT_EQ(Run({Scope::Kind::kJob, "team", "train"}), kFailed);
  EXPECT_EQ(Run({Scope::Kind::kJob, "team", "train-0"}), kAllPass) << Findings().dump(1);
  EXPECT_EQ(Run({Scope::Kind::kJob, "team", "trian"}), kFailed);
  EXPECT_THAT(error_, HasSubstr("no pod that asks for rdma/* is called trian in namespace team"));
}

// A pod of one of two Jobs of a JobSet.
json PodOfASet(int job) {
  json pod = TrainingPod(job);
  json& metadata = pod["metadata"];
  metadata["name"] = absl::StrCat("js-w-", job, "-0-abcde");
  metadata["labels"] = {{"jobset.sigs.k8s.io/jobset-name", "js"},
                        {"jobset.sigs.k8s.io/replicatedjob-name", "w"}};
  metadata["ownerReferences"][0]["name"] = absl::StrCat("js-w-", job);
  metadata["ownerReferences"][0]["uid"] = absl::StrCat("uid-job-", job);
  return pod;
}

json ReportOwnedBy(const json& owner, const std::string& name) {
  return {{"metadata",
           {{"name", name}, {"namespace", "team"}, {"ownerReferences", json::array({owner})}}},
          {"status",
           {{"severity", "Warning"},
            {"pods", 2},
            {"reasons", json::array({ReasonOf("RailDown", "repair the cable")})}}}};
}

TEST_F(DoctorTest, AGangThatRunsIsLookedAtWithItsNodesAndReport) {
  for (const char* label : {"big", "true"}) {
    SCOPED_TRACE(label);
    server_ = Server();
    const bool named = std::string(label) == "big";
    for (int i = 0; i < 2; ++i) {
      json pod = named ? MemberOfGang(i, 2) : PodOfASet(i);
      pod["metadata"]["labels"]["railhead.io/gang"] = label;
      pod["metadata"]["annotations"]["railhead.io/gang-size"] = "2";
      pod["spec"].erase("schedulingGates");
      pod["spec"]["nodeName"] = absl::StrCat("n", i);
      pod["status"] = {{"phase", "Running"}};
      server_.Put(PodRef("team", pod["metadata"]["name"]), pod);
    }
    const json owner = named ? json{{"kind", "Pod"}, {"name", "gang-0"}, {"uid", "uid-gang-0"}}
                             : json{{"kind", "Job"}, {"name", "js-w-0"}, {"uid", "uid-job-0"}};
    const std::string name = named ? "podgroup-big" : "job-js-w-0";
    server_.Put({"railhead.io/v1alpha1", "railreports", "team", name}, ReportOwnedBy(owner, name));
    server_.Break("n1", 0, "port 1 is DOWN");
    EXPECT_EQ(Run({Scope::Kind::kJob, "team", named ? "big" : "js"}), kFailed);
    EXPECT_TRUE(Names(Findings(), "nodes", "port 1 is DOWN")) << Findings().dump(1);
    EXPECT_TRUE(Names(Findings(), "jobs", "RailDown")) << Findings().dump(1);
    if (named) continue;
    // One of its Jobs is of the same gang.
    EXPECT_EQ(Run({Scope::Kind::kJob, "team", "js-w-0"}), kFailed);
    EXPECT_TRUE(Names(Findings(), "nodes", "port 1 is DOWN")) << Findings().dump(1);
  }
}

TEST_F(DoctorTest, AGangThatWaitsIsLookedAtAsAWhole) {
  for (int i = 0; i < 2; ++i) {
    json pod = PodOfASet(i);
    pod["metadata"]["labels"]["railhead.io/gang"] = "true";
    pod["metadata"]["annotations"]["railhead.io/gang-size"] = "2";
    pod["spec"]["schedulingGates"] = json::array({{{"name", "railhead.io/gang"}}});
    pod["spec"].erase("nodeName");
    pod["status"] = {{"phase", "Pending"}};
    server_.Put(PodRef("team", pod["metadata"]["name"]), pod);
  }
  Run({Scope::Kind::kJob, "team", "js-w-0"});
  EXPECT_TRUE(Names(Findings(), "gangs", "2 pods of 2 wait")) << Findings().dump(1);
  EXPECT_FALSE(Names(Findings(), "gangs", "pods are there")) << Findings().dump(1);
}

// A pod of a group of a LeaderWorkerSet; its leader, with index 0, requests no RDMA.
json PodOfAGroup(int index, int size, const char* name = "serve") {
  json pod = MemberOfGang(index, size);
  json& metadata = pod["metadata"];
  metadata["name"] = absl::StrCat(name, "-0-", index);
  metadata["uid"] = absl::StrCat("uid-", name, "-0-", index);
  metadata["labels"] = {{"leaderworkerset.sigs.k8s.io/name", name},
                        {"leaderworkerset.sigs.k8s.io/group-index", "0"},
                        {"leaderworkerset.sigs.k8s.io/worker-index", absl::StrCat(index)}};
  metadata["annotations"]["leaderworkerset.sigs.k8s.io/size"] = absl::StrCat(size);
  if (index > 0) {
    metadata["labels"]["railhead.io/gang"] = "true";
    return pod;
  }
  metadata["annotations"].erase("railhead.io/gang-size");
  pod["spec"] = {{"nodeName", "n0"}, {"containers", json::array({{{"name", "main"}}})}};
  pod["status"] = {{"phase", "Running"}};
  return pod;
}

TEST_F(DoctorTest, ALeaderWithoutRdmaCountsForItsGang) {
  for (int i = 0; i < 4; ++i) {
    const json pod = PodOfAGroup(i, 4);
    server_.Put(PodRef("team", pod["metadata"]["name"]), pod);
  }
  server_.Event("Pod", "team", "serve-0-1", true, "GangBlocked", "the patch was rejected");
  for (const Scope& scope : {Scope{}, Scope{Scope::Kind::kJob, "team", "serve"}}) {
    EXPECT_EQ(Run(scope), kFailed) << error_;
    EXPECT_TRUE(Names(Findings(), "gangs", "3 pods of 4 wait: the patch was rejected"))
        << Findings().dump(1);
  }
  // Those of other jobs do not count.
  json other = PodOfAGroup(0, 4, "other");
  server_.Put(PodRef("team", "other-0-0"), other);
  server_.Remove(PodRef("team", "serve-0-0"));
  EXPECT_EQ(Run({Scope::Kind::kJob, "team", "serve"}), kWarned);
  EXPECT_TRUE(Names(Findings(), "gangs", "3 of 4 pods exist")) << Findings().dump(1);
  EXPECT_EQ(Run({Scope::Kind::kJob, "team", "other-0-0"}), kFailed);
  EXPECT_THAT(error_, HasSubstr("no pod that asks for rdma/* is called other-0-0"));
}

TEST_F(DoctorTest, AJobSetIsLookedAtByItsName) {
  for (int i = 0; i < 2; ++i) {
    const json pod = PodOfASet(i);
    server_.Put(PodRef("team", pod["metadata"]["name"]), pod);
  }
  EXPECT_EQ(Run({Scope::Kind::kJob, "team", "js"}), kAllPass) << error_ << Findings().dump(1);
  server_.Break("n1", 0, "port 1 is DOWN");
  EXPECT_EQ(Run({Scope::Kind::kJob, "team", "js"}), kFailed);
  EXPECT_TRUE(Names(Findings(), "nodes", "port 1 is DOWN")) << Findings().dump(1);
}

TEST_F(DoctorTest, WithoutARightTheOtherChecksAreMade) {
  server_.denied = {"nodes", "pods", "events"};
  EXPECT_EQ(Run(), kWarned);
  for (const json& finding : Findings()) EXPECT_EQ(finding["check"], "rights");
  EXPECT_EQ(Findings().size(), 5) << Findings().dump(1);  // pods and events are asked twice
}

TEST_F(DoctorTest, JobsThatCouldNotBeJudgedDoNotPass) {
  for (const std::set<std::string>& denied :
       {std::set<std::string>{"nodes", "railreports"}, {"nodes"}, {"railreports"}, {"pods"}}) {
    server_.denied = denied;
    EXPECT_EQ(Run(), kWarned) << Findings().dump(1);
    for (const json& finding : answer_["findings"]) EXPECT_NE(finding["check"], "jobs") << finding;
  }
}

TEST_F(DoctorTest, AClusterThatDoesNotAnswerIsAFinding) {
  server_.outage = absl::UnavailableError("cannot connect to https://h:1");
  EXPECT_EQ(Run(), kFailed);
  ASSERT_EQ(Findings().size(), 1);
  EXPECT_EQ(Findings()[0]["check"], "api");
  EXPECT_EQ(Findings()[0]["cause"], "cannot connect to https://h:1");
}

// This machine's clock is wrong, and the server's is known after its first response.
TEST_F(DoctorTest, AgesAreByTheServersClock) {
  std::ostringstream out;
  std::ostringstream err;
  const auto now = [this] { return server_.calls == 0 ? Now() + absl::Hours(1) : Now(); };
  EXPECT_EQ(RunDoctor({{}, false, false, kVersion}, server_, now, out, err), kAllPass) << out.str();
}

TEST_F(DoctorTest, SharpAmIsAskedFromAPodThatWantsSharp) {
  const auto command = [this]() -> std::string {
    Run();
    for (const json& step : answer_["next"]) {
      if (absl::StrContains(step["symptom"].get<std::string>(), "SHARP")) return step["command"];
    }
    return "";
  };
  EXPECT_EQ(command(), "");
  json& pod = server_.At(PodRef("team", "train-1"));
  pod["spec"]["containers"][0]["env"] =
      json::array({{{"name", "NCCL_COLLNET_ENABLE"}, {"value", "1"}}});
  EXPECT_EQ(command(), "") << "it does not run yet";
  pod["status"]["containerStatuses"] =
      json::array({{{"name", "main"}, {"state", {{"running", {{"startedAt", Stamp(Now())}}}}}}});
  EXPECT_EQ(command(), "kubectl -n team exec train-1 -- sharp_hello -d mlx5_0:1 -v 3");
}

TEST_F(DoctorTest, PeopleGetATableTheFixAndTheNextCommands) {
  server_.Break("n1", 1, "port 1 is DOWN");
  const std::string text = Text();
  EXPECT_THAT(text, HasSubstr("ok    install    cluster: release railhead in railhead-system\n"));
  EXPECT_THAT(text, HasSubstr("FAIL  nodes      node n1: 1 of 2 rails carry data; rail 1 (mlx5_1): "
                              "port 1 is DOWN\n                 fix: repair the cable"));
  EXPECT_THAT(text, HasSubstr("helm test railhead --namespace railhead-system --logs"));
  EXPECT_THAT(text, HasSubstr("\n1 failure, 0 warnings, 16 passed\n"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

// Names and messages may come from anybody.
TEST_F(DoctorTest, NothingThatOthersWroteControlsTheTerminal) {
  server_.Break("n1", 1, "\x1b]52;c;aGk=\x07\nFAIL");
  EXPECT_THAT(Text(), HasSubstr("\\x1b]52;c;aGk=\\x07\\nFAIL"));
}

TEST_F(DoctorTest, WhatIsStrangeInObjectsIsAsIfItWereNotThere) {
  server_.Put(NodeRef("odd"),
              {{"metadata", {{"name", "odd"}, {"labels", 3}}},
               {"status", {{"conditions", json::array({3, nullptr, {{"type", 1}}})}}}});
  server_.Put(PodRef("team", "odd"), {{"metadata", {{"name", "odd"}}}, {"spec", 7}});
  server_.Put({"railhead.io/v1alpha1", "railreports", "team", "odd"},
              {{"metadata", {{"name", "odd"}}},
               {"status", {{"reasons", json::array({1, {{"pods", "x"}}})}}}});
  EXPECT_NE(Run(), kFailed) << Findings().dump(1);
}

TEST(ParseScopeTest, ReadsWordsAndNamesTheNearest) {
  EXPECT_EQ(ParseScope({}, "")->kind, Scope::Kind::kCluster);
  EXPECT_EQ(ParseScope({"node", "n1"}, "")->name, "n1");
  EXPECT_EQ(ParseScope({"job", "team/train"}, "other")->space, "team");
  EXPECT_EQ(ParseScope({"job", "train"}, "team")->space, "team");
  EXPECT_THAT(
      ParseScope({"noed", "n1"}, "").status().message(),
      HasSubstr("is not one of cluster, node NAME or job NAMESPACE/NAME; did you mean node?"));
  EXPECT_THAT(ParseScope({"node"}, "").status().message(), HasSubstr("node needs a name"));
  EXPECT_THAT(ParseScope({"cluster", "x"}, "").status().message(),
              HasSubstr("takes no further arguments"));
  EXPECT_THAT(ParseScope({"job", "train"}, "").status().message(),
              HasSubstr("needs its namespace"));
}

// What a tenant may create in its namespace so that the chart seems to be there.
void PutImpostor(Server& server, const std::string& space, const std::string& text) {
  const std::string at = absl::StrCat(space, "-", std::hash<std::string>()(text));
  const auto labelled = [&](const char* component) {
    json labels = Labels(component);
    labels["app.kubernetes.io/instance"] = text;  // the API server limits it to some characters
    return json{{"name", at}, {"namespace", space}, {"labels", labels}};
  };
  server.Put({"apps/v1", "deployments", space, at},
             {{"metadata", labelled("operator")}, {"spec", {{"replicas", 0}}}});
  server.Put({"apps/v1", "daemonsets", space, at}, {{"metadata", labelled("device-plugin")}});
  json pod = ComponentPod(at, "operator", "n0");
  pod["metadata"] = labelled("operator");
  pod["spec"]["containers"][0]["image"] = text;
  pod["status"]["containerStatuses"] = Waiting("ImagePullBackOff", "evil");
  server.Put(PodRef(space, at), pod);
  server.Put({"v1", "configmaps", space, at},
             {{"metadata", labelled("operator")},
              {"data", {{"operator.yaml", "rdmaResources: [example.com/evil]\n"}}}});
  server.Put({"coordination.k8s.io/v1", "leases", space, at},
             {{"metadata", labelled("operator")}, {"spec", {{"holderIdentity", text}}}});
}

json HostilePod(const std::string& text, const char* field) {
  json pod = TrainingPod(0);
  json& metadata = pod["metadata"];
  metadata["name"] = "evil-0";
  metadata["uid"] = "uid-evil";
  if (std::string(field) == "gang") {
    pod = MemberOfGang(0, 2);
    pod["metadata"]["labels"]["railhead.io/gang"] = text;
  } else if (std::string(field) == "owner") {
    pod = MemberOfGang(0, 2);
    pod["metadata"]["ownerReferences"] = json::array({{{"apiVersion", "batch/v1"},
                                                       {"kind", "Job"},
                                                       {"name", text},
                                                       {"uid", "uid-evil"},
                                                       {"controller", true}}});
  } else if (std::string(field) == "jobset") {
    pod = MemberOfGang(0, 2);
    pod["metadata"]["labels"]["jobset.sigs.k8s.io/jobset-name"] = text;
  } else {
    metadata["annotations"] = {{"railhead.io/injected", "0.1.0"}, {field, text}};
  }
  return pod;
}

void ExpectNoAdviceOf(const std::string& text, const json& answer) {
  const auto check = [&](const std::string& advice) {
    EXPECT_FALSE(absl::StrContains(advice, text)) << advice;
    EXPECT_FALSE(absl::StrContains(advice, "evil.example")) << advice;
    EXPECT_FALSE(absl::StrContains(advice, "$(evil)")) << advice;
    EXPECT_FALSE(absl::StrContains(advice, "`evil`")) << advice;
  };
  for (const json& finding : answer["findings"]) check(finding["fix"]);
  for (const json& step : answer["next"]) check(step["command"]);
}

TEST_F(DoctorTest, NothingThatATenantWroteIsAdvice) {
  int warned = 0;
  for (const std::string& text : kube::HostileTexts()) {
    if (absl::StrContains(text, "\xff")) continue;  // objects are UTF-8
    SCOPED_TRACE(text.substr(0, 60));
    server_.Event("Node", "team", "n0", true, "DeviceScanHangs", text);
    for (const char* field : {"gang", "owner", "jobset", "railhead.io/not-done",
                              "railhead.io/profile", "railhead.io/kept-environment"}) {
      for (const char* line :
           {"", "NoIndex: a; ", "NoIndex/NotIndexed\n", "NoIndex/", "HalfSet: "}) {
        const json pod = HostilePod(absl::StrCat(line, text), field);
        server_.Put(PodRef("team", pod["metadata"]["name"]), pod);
        Run();
        ExpectNoAdviceOf(text, answer_);
        warned += Findings().empty() ? 0 : 1;
        if (std::string(field) == "owner" && std::string(line).empty()) {
          Run({Scope::Kind::kJob, "team", text});
          if (answer_.is_object()) ExpectNoAdviceOf(text, answer_);
        }
        server_.Remove(PodRef("team", pod["metadata"]["name"]));
      }
    }
  }
  EXPECT_GT(warned, 20);
}

// In whichever order the namespaces are listed.
TEST_F(DoctorTest, TheInstallationIsThatOfTheAdministrator) {
  for (const char* space : {"aaa", "zzz", "railhead-systems"}) {
    for (const std::string& text : {std::string("mine"), kube::HostileTexts().front()}) {
      server_ = Server();
      PutImpostor(server_, space, text);
      EXPECT_EQ(Run(), kAllPass) << Findings().dump(1);
      EXPECT_FALSE(absl::StrContains(answer_.dump(), space)) << answer_.dump(1);
      ExpectNoAdviceOf(text, answer_);
      // Commands name the release.
      server_.Remove(kDaemonSet);
      Run();
      EXPECT_THAT(Findings().dump(), HasSubstr("helm upgrade railhead charts/railhead -n "
                                               "railhead-system"));
      EXPECT_FALSE(absl::StrContains(answer_.dump(), space)) << answer_.dump(1);
      // Also where the webhook's configuration is gone.
      server_.Remove(kWebhook);
      Run();
      EXPECT_THAT(Findings().dump(), HasSubstr("helm upgrade railhead charts/railhead -n "
                                               "railhead-system"));
      EXPECT_FALSE(absl::StrContains(answer_.dump(), space)) << answer_.dump(1);
      // And without any installation.
      server_.Remove(kBinding);
      server_.Remove(kDeployment);
      Run();
      EXPECT_THAT(Findings().dump(), HasSubstr("Railhead is not installed"));
      EXPECT_FALSE(absl::StrContains(answer_.dump(), space)) << answer_.dump(1);
    }
  }
}

TEST_F(DoctorTest, TwoReleasesAreNamed) {
  json other = server_.At(kWebhook);
  other["metadata"]["labels"]["app.kubernetes.io/instance"] = "second";
  other["webhooks"][0]["clientConfig"]["service"]["namespace"] = "elsewhere";
  server_.Put({kWebhook.api, kWebhook.resource, "", "second"}, other);
  Run();
  EXPECT_THAT(Findings().dump(),
              HasSubstr("several releases: railhead in railhead-system, second in elsewhere"));
}

}  // namespace
}  // namespace railhead::cli::doctor
