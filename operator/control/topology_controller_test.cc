// SPDX-License-Identifier: Apache-2.0
#include "operator/control/topology_controller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "kube/json.h"
#include "kube/testing/fake_api.h"
#include "kube/testing/soon.h"
#include "operator/cluster/cluster_caches.h"
#include "placement/topology/published.h"

namespace railhead::topology {
namespace {

using kube::Json;
using kube::testing::Soon;
using ::testing::HasSubstr;

constexpr char kKueue[] = "kueue.x-k8s.io/v1beta2";
constexpr char kVolcano[] = "topology.volcano.sh/v1alpha1";

// A server that applies as a real one does: labels of one manager, an object's UID and version as
// conditions, and all of it seen by watches.
class Server final : public kube::Api {
 public:
  absl::StatusOr<Json> Call(const kube::ApiRequest& request) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (request.method == "GET" && absl::StartsWith(request.path, "/apis/") &&
        kinds_.count(request.path.substr(6)) > 0) {
      Json kinds = {{"resources", Json::array()}};
      kinds["resources"].push_back({{"name", kinds_[request.path.substr(6)]}});
      return kinds;
    }
    if (request.content_type != "application/apply-patch+yaml") return api.Call(request);
    const Json body = Json::parse(request.body);
    const std::string path = request.path.substr(0, request.path.find('?'));
    absl::StatusOr<Json> applied = absl::EndsWith(path, "/status") ? ApplyStatus(body)
                                   : absl::StartsWith(path, "/api/v1/nodes/")
                                       ? ApplyLabels(body)
                                       : ApplyObject(body, path);
    // What is refused, as the watch was not there yet, has changed nothing.
    if (applied.ok()) writes_.push_back(path);
    return applied;
  }
  absl::Status Stream(const kube::StreamRequest& request,
                      const std::function<absl::Status(absl::string_view)>& on_bytes) override {
    return api.Stream(request, on_bytes);
  }
  void Know(const std::string& version, const std::string& resource) {
    const std::lock_guard<std::mutex> lock(mutex_);
    kinds_[version] = resource;
  }
  std::vector<std::string> TakeWrites() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::exchange(writes_, {});
  }

  kube::testing::FakeApi api;

 private:
  static absl::Status Conflict() {
    return kube::StatusFromAnswer("apply", 409, R"({"reason": "Conflict"})");
  }
  absl::StatusOr<Json> ApplyStatus(const Json& body) {
    const kube::ObjectRef ref = {kTopologyVersion, kTopologyResource, "", kTopologyName};
    Json object = api.At(ref);
    if (object["metadata"]["resourceVersion"] != body["metadata"]["resourceVersion"]) {
      return Conflict();
    }
    object["status"] = body["status"];
    api.Put(ref, object);
    return object;
  }
  absl::StatusOr<Json> ApplyLabels(const Json& body) {
    const kube::ObjectRef ref = {"v1", "nodes", "", body["metadata"]["name"]};
    Json object = api.At(ref);
    if (object["metadata"]["uid"] != body["metadata"]["uid"]) return Conflict();
    std::set<std::string>& own = owned_[ref.name];
    for (const std::string& key : own) object["metadata"]["labels"].erase(key);
    own.clear();
    for (const auto& [key, value] : body["metadata"]["labels"].items()) {
      object["metadata"]["labels"][key] = value;
      own.insert(key);
    }
    api.Put(ref, object);
    return object;
  }

  absl::StatusOr<Json> ApplyObject(const Json& body, const std::string& path) {
    const std::string kind = kinds_[body["apiVersion"].get<std::string>()];
    Json object = body;
    object["metadata"]["uid"] = path;
    api.Put({body["apiVersion"], kind, "", body["metadata"]["name"]}, object);
    return object;
  }

  std::mutex mutex_;
  std::map<std::string, std::string> kinds_;  // a resource of each API
  std::vector<std::string> writes_;
  std::map<std::string, std::set<std::string>> owned_;  // labels, by node
};

class TopologyControllerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int i = 0; i < 4; ++i) PutNode(absl::StrCat("n", i), absl::StrCat("l", i / 2));
  }
  void TearDown() override { Stop(); }

  void PutNode(const std::string& name, const std::string& leaf, const std::string& uid = "first") {
    Json labels = {{"kubernetes.io/hostname", name}};
    if (!leaf.empty()) labels["topology.railhead.io/leaf"] = leaf;
    server_.api.Put({"v1", "nodes", "", name},
                    {{"metadata", {{"name", name}, {"uid", uid}, {"labels", labels}}},
                     {"status", {{"allocatable", {{"nvidia.com/gpu", "8"}, {"rdma/hca", "4"}}}}}});
  }
  void Start(bool publish, absl::Duration between_statuses = absl::ZeroDuration()) {
    caches_ =
        std::make_unique<op::ClusterCaches>(op::ClusterCachesOptions{.topology = true}, &server_);
    controller_ = std::make_unique<TopologyController>(
        TopologyControllerOptions{.publish = publish,
                                  .settle = absl::Milliseconds(1),
                                  .between_statuses = between_statuses,
                                  .now = [] { return absl::UnixEpoch(); }},
        &server_, caches_.get(), [this] { return leads_.load(); });
    caches_->Start();
    thread_ = std::jthread([this](const std::stop_token& stop) { controller_->Run(stop); });
  }
  void Stop() {
    if (controller_ == nullptr) return;
    caches_->RequestStop();
    thread_.request_stop();
    thread_.join();
    caches_->Join();
    controller_.reset();
    caches_.reset();
  }
  Json Status() const {
    const auto all = server_.api.In("/apis/railhead.io/v1alpha1/fabrictopologies");
    if (all.empty() || !all[0].contains("status")) return {{"counts", {{"nodes", -1}}}};
    return all[0]["status"];
  }
  std::string Condition(const std::string& type) const {
    const Json status = Status();
    if (!status.contains("conditions")) return "";
    for (const Json& condition : status["conditions"]) {
      if (condition["type"] == type) {
        return absl::StrCat(kube::StringAt(condition, {"status"}), " ",
                            kube::StringAt(condition, {"reason"}));
      }
    }
    return "";
  }
  std::string LabelOf(const std::string& node, const std::string& level) const {
    return kube::StringAt(server_.api.At({"v1", "nodes", "", node}),
                          {"metadata", "labels", absl::StrCat(kLabelPrefix, level)});
  }
  size_t Objects(const std::string& version, const std::string& resource) const {
    return server_.api.In(absl::StrCat("/apis/", version, "/", resource)).size();
  }

  Server server_;
  std::atomic<bool> leads_{true};
  std::unique_ptr<op::ClusterCaches> caches_;
  std::unique_ptr<TopologyController> controller_;
  std::jthread thread_;
};

TEST_F(TopologyControllerTest, MakesTheObjectAndWritesItWhenTheFabricIsAnother) {
  Start(false);
  ASSERT_TRUE(Soon([this] { return Status()["counts"]["nodes"] == 4; }));
  EXPECT_EQ(Condition("Discovered"), "True Labels");
  EXPECT_EQ(Condition("Published"), "");
  EXPECT_EQ(server_.TakeWrites().size(), 1) << "of the status";
  EXPECT_EQ(LabelOf("n0", "leaf"), "") << "nothing is published";

  // The first is no news: there is one write, for the second.
  Json node = server_.api.At({"v1", "nodes", "", "n0"});
  node["status"]["conditions"] = {{{"type", "Ready"}, {"status", "True"}}};
  server_.api.Put({"v1", "nodes", "", "n0"}, node);
  server_.api.Remove({"v1", "nodes", "", "n3"});
  ASSERT_TRUE(Soon([this] { return Status()["counts"]["nodes"] == 3; }));
  EXPECT_EQ(server_.TakeWrites().size(), 1);
}

TEST_F(TopologyControllerTest, WhoDoesNotLeadWritesNothing) {
  leads_ = false;
  Start(true);
  ASSERT_TRUE(Soon([this] {
    for (const kube::InformerState& state : caches_->States()) {
      if (!state.synced) return false;
    }
    return true;
  }));
  EXPECT_TRUE(server_.TakeWrites().empty());
  EXPECT_EQ(Objects(kTopologyVersion, kTopologyResource), 0);
  leads_ = true;
  controller_->OnLead();
  EXPECT_TRUE(Soon([this] { return Status()["counts"]["nodes"] == 4; }));
}

TEST_F(TopologyControllerTest, WhatIsOnlyCountedWaitsAndWhatTurnsAConditionDoesNot) {
  Start(true, absl::Hours(1));
  ASSERT_TRUE(Soon([this] { return Condition("Published") == "True UpToDate"; }));
  server_.TakeWrites();
  for (int i = 4; i < 8; ++i) {
    const std::string name = absl::StrCat("n", i);
    PutNode(name, "l1");
    ASSERT_TRUE(Soon([&] { return !LabelOf(name, "leaf").empty(); }));
  }
  EXPECT_EQ(Status()["counts"]["nodes"], 4);
  PutNode("n8", "");
  ASSERT_TRUE(Soon([this] { return Condition("Consistent") == "False Conflicts"; }));
  EXPECT_EQ(Status()["counts"]["nodes"], 8);
  const std::vector<std::string> writes = server_.TakeWrites();
  EXPECT_EQ(
      std::count_if(writes.begin(), writes.end(),
                    [](const std::string& path) { return absl::EndsWith(path, "cluster/status"); }),
      1);
}

TEST_F(TopologyControllerTest, WhatIsOnlyCountedIsWrittenWhenThePauseIsOver) {
  Start(false, absl::Milliseconds(300));
  ASSERT_TRUE(Soon([this] { return Status()["counts"]["nodes"] == 4; }));
  PutNode("n4", "l1");
  EXPECT_TRUE(Soon([this] { return Status()["counts"]["nodes"] == 5; }));
}

TEST_F(TopologyControllerTest, NodesGetLabelsAndLoseThemWithTheirPlace) {
  Start(true);
  ASSERT_TRUE(Soon([this] { return Condition("Published") == "True UpToDate"; }));
  EXPECT_EQ(LabelOf("n3", "leaf"), "l00001");
  EXPECT_EQ(LabelOf("n3", "node"), "n00003");
  // A node of the same name is another one.
  PutNode("n3", "l0", "second");
  ASSERT_TRUE(Soon([this] { return LabelOf("n3", "leaf") == "l00000"; }));
  // It has no place any more.
  Json node = server_.api.At({"v1", "nodes", "", "n3"});
  node["metadata"]["labels"].erase("topology.railhead.io/leaf");
  server_.api.Put({"v1", "nodes", "", "n3"}, node);
  ASSERT_TRUE(
      Soon([this] { return LabelOf("n3", "leaf").empty() && LabelOf("n3", "node").empty(); }));
  EXPECT_EQ(LabelOf("n0", "leaf"), "l00000");
}

TEST_F(TopologyControllerTest, LabelsOfOthersAreNoReasonToWriteAgain) {
  Start(true);
  ASSERT_TRUE(Soon([this] { return Condition("Published") == "True UpToDate"; }));
  Json node = server_.api.At({"v1", "nodes", "", "n0"});
  node["metadata"]["labels"][absl::StrCat(kLabelPrefix, "mine")] = "x";
  server_.TakeWrites();
  server_.api.Put({"v1", "nodes", "", "n0"}, node);
  for (int i = 4; i < 9; ++i) {
    PutNode(absl::StrCat("n", i), "l1");
    ASSERT_TRUE(Soon([&] { return Status()["counts"]["nodes"] == i + 1; }));
  }
  const std::vector<std::string> writes = server_.TakeWrites();
  EXPECT_LE(std::count(writes.begin(), writes.end(), "/api/v1/nodes/n0"), 1);
  EXPECT_EQ(LabelOf("n0", "mine"), "x");
}

TEST_F(TopologyControllerTest, OtherSchedulersGetTheirObjectsWhereTheirKindsAre) {
  server_.Know(kVolcano, "hypernodes");
  Start(true);
  ASSERT_TRUE(Soon([this] { return Objects(kVolcano, "hypernodes") == 2; }))
      << Condition("Published");
  EXPECT_EQ(Objects(kKueue, "topologies"), 0) << "the cluster has no Kueue";
  server_.api.Put({kVolcano, "hypernodes", "", "somebody's"},
                  {{"metadata", {{"name", "somebody's"}, {"uid", "u"}}}});
  for (const char* name : {"n2", "n3"}) server_.api.Remove({"v1", "nodes", "", name});
  EXPECT_TRUE(Soon([this] { return Objects(kVolcano, "hypernodes") == 2; }));
  EXPECT_EQ(kube::StringAt(server_.api.At({kVolcano, "hypernodes", "", "leaf-l0"}), {"kind"}),
            "HyperNode");
  Stop();

  server_.Know(kKueue, "topologies");
  Start(true);
  EXPECT_TRUE(Soon([this] { return Objects(kKueue, "topologies") == 1; }));
}

TEST_F(TopologyControllerTest, AModelThatCannotBeReadIsToldAndChangesNothing) {
  Start(true);
  ASSERT_TRUE(Soon([this] { return Condition("Published") == "True UpToDate"; }));
  const kube::ObjectRef ref = {kTopologyVersion, kTopologyResource, "", kTopologyName};
  Json object = server_.api.At(ref);
  object["metadata"]["generation"] = 2;
  object["spec"]["model"] = {{"topology", "fat-tree"}};
  server_.api.Put(ref, object);
  ASSERT_TRUE(Soon([this] { return Condition("Discovered") == "False InvalidModel"; }));
  EXPECT_EQ(Condition("Published"), "False Failed");
  EXPECT_EQ(LabelOf("n0", "leaf"), "l00000");

  object = server_.api.At(ref);
  object["metadata"]["generation"] = 3;
  object["spec"]["model"] = {
      {"topology", "fat-tree"},
      {"levels", {"rack"}},
      {"rails", 4},
      {"domains", {{{"name", "r1"}, {"nodes", {{{"name", "n0"}, {"gpus", 8}, {"hcas", 4}}}}}}}};
  server_.api.Put(ref, object);
  ASSERT_TRUE(Soon([this] { return LabelOf("n0", "rack") == "r00001"; }));
  EXPECT_TRUE(Soon([this] { return LabelOf("n1", "leaf").empty(); })) << "not in the model";
  EXPECT_EQ(LabelOf("n0", "leaf"), "");
  EXPECT_TRUE(Soon([this] { return Condition("Discovered") == "True Given"; }));
  EXPECT_EQ(Condition("Consistent"), "False Conflicts");
}

}  // namespace
}  // namespace railhead::topology
