// SPDX-License-Identifier: Apache-2.0
#include "operator/control/collector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "kube/json.h"
#include "kube/testing/fake_api.h"
#include "kube/testing/soon.h"
#include "operator/collector/testing/patient_clock.h"
#include "operator/control/controllers.h"
#include "operator/verdict/testing/page.h"
#include "operator/verdict/testing/scene.h"
#include "operator/verdict/testing/spoil.h"

namespace railhead::op {
namespace {

using kube::Json;
using kube::testing::Soon;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using verdict::testing::All;
using verdict::testing::Scene;

// The server, but for some Events that it does not take.
class ApiRefusingEvents final : public kube::Api {
 public:
  explicit ApiRefusingEvents(kube::Api* api) : api_(api) {}
  absl::StatusOr<Json> Call(const kube::ApiRequest& request) override {
    if (request.method == "POST" && refuse > 0 && absl::StrContains(request.path, "/events")) {
      --refuse;
      return absl::UnavailableError("no room");
    }
    if (request.method == "POST" && forbid && absl::StrContains(request.path, "/events")) {
      ++refused;
      return absl::PermissionDeniedError("forbidden");
    }
    return api_->Call(request);
  }
  absl::Status Stream(const kube::StreamRequest& request,
                      const std::function<absl::Status(absl::string_view)>& on_bytes) override {
    return api_->Stream(request, on_bytes);
  }

  std::atomic<int> refuse{0};
  std::atomic<bool> forbid{false};
  std::atomic<int> refused{0};

 private:
  kube::Api* const api_;
};

// A cluster with the pods and nodes of a scene, whose pods answer as it says.
class CollectorTest : public ::testing::Test {
 protected:
  CollectorTest() {
    api_.Put(Profile(), Json::parse(R"({"apiVersion": "railhead.io/v1alpha1",
        "kind": "RailProfile", "metadata": {"name": "h100", "generation": 2},
        "spec": {"fabric": "InfiniBand", "namespaceSelector": {"matchLabels": {"a": "b"}}}})"));
    for (Json& pod : scene_.pods) {
      pod["metadata"]["ownerReferences"] = Json::array({{{"apiVersion", "batch/v1"},
                                                         {"kind", "Job"},
                                                         {"name", "train"},
                                                         {"uid", "uid-job"},
                                                         {"controller", true}}});
    }
  }

  static kube::ObjectRef Profile() { return {"railhead.io/v1alpha1", "railprofiles", "", "h100"}; }
  // The fake server lists what lies directly below the collection.
  static kube::ObjectRef Pod(const std::string& name) { return {"v1", "pods", "", name}; }

  void PutScene() {
    PutNodes();
    for (const Json& pod : scene_.pods) api_.Put(Pod(pod["metadata"]["name"]), pod);
  }
  void PutNodes() {
    for (const Json& node : scene_.nodes) {
      api_.Put({"v1", "nodes", "", node["metadata"]["name"]}, node);
    }
  }
  // The pods start now, before the eyes of the replica.
  void StartPods() {
    for (Json pod : scene_.pods) {
      pod["status"] = {{"phase", "Pending"}};
      api_.Put(Pod(pod["metadata"]["name"]), pod);
    }
    PutScene();
  }
  void Answer(int pod, const std::string& page) {
    const std::lock_guard<std::mutex> lock(mutex_);
    pages_[pod] = page;
  }
  void AnswerAsTheSceneSays() {
    for (int pod = 0; pod < 4; ++pod) {
      Answer(pod, verdict::testing::PageOf(scene_.reports[static_cast<size_t>(pod)]));
    }
  }
  // The nodes as they are, and what each pod says of itself: only then is a change one.
  bool KnowsTheScene(const Controllers& replica) {
    return KnowsNodes(replica) && Soon([&] {
             return AskedOf(0) > 0 && AskedOf(1) > 0 && AskedOf(2) > 0 && AskedOf(3) > 0;
           });
  }
  int AskedOf(int pod) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return asked_[pod];
  }
  // A pod of another job that misses admission, and is told so: what was to be told before has been
  // by then.
  bool TellOfAnother(const std::string& name) {
    Json pod = Scene().pods[0];
    pod["metadata"]["name"] = name;
    pod["metadata"]["uid"] = name;
    pod["metadata"].erase("annotations");
    api_.Put(Pod(name), pod);
    return Soon([&] { return !Told(name).empty(); });
  }
  // The Events of a pod, as "Warning Reason".
  std::vector<std::string> Told(const std::string& pod) const {
    std::vector<std::string> told;
    for (const Json& event : api_.In("/api/v1/namespaces/team/events")) {
      if (kube::StringAt(event, {"involvedObject", "name"}) != pod) continue;
      told.push_back(
          absl::StrCat(kube::StringAt(event, {"type"}), " ", kube::StringAt(event, {"reason"})));
    }
    return told;
  }
  static std::string Metric(const Controllers& controllers) {
    Metrics metrics;
    controllers.Report(metrics);
    return metrics.Text();
  }

  // The severity in the server's copy of a RailReport.
  std::string SeverityOf(const std::string& report) const {
    for (const Json& status :
         api_.In(absl::StrCat("/apis/railhead.io/v1alpha1/namespaces/team/railreports/", report))) {
      return kube::StringAt(status, {"status", "severity"});
    }
    return "";
  }

  // What was said of nodes before has been heard: one more node is known.
  bool KnowsNodes(const Controllers& controllers) {
    const std::string name = absl::StrCat("node-", ++changes_);
    api_.Put({"v1", "nodes", "", name}, {{"metadata", {{"name", name}}}});
    const std::string known = absl::StrCat("railhead_cache_objects{resource=\"nodes\"} ",
                                           api_.In("/api/v1/nodes").size(), "\n");
    return Soon([&] { return absl::StrContains(Metric(controllers), known); });
  }
  static bool Leads(const Controllers& controllers) {
    const std::string page = Metric(controllers);
    return absl::StrContains(page, "\nrailhead_leader 1\n") &&
           absl::StrContains(page, "railhead_cache_synced{resource=\"pods\"} 1");
  }

  std::unique_ptr<Controllers> Replica(const std::string& identity) {
    ControllersOptions options;
    options.space = "sys";
    options.lease = "op";
    options.identity = identity;
    options.excluded_namespaces = {"kube-system"};
    options.verdicts = true;
    options.clock = [this] { return clock_.Now() + absl::Seconds(later_.load()); };
    options.now = [this] { return absl::Now() + absl::Seconds(moved_.load()); };
    options.fetch = [this](const std::string& address, int port,
                           absl::Duration) -> absl::StatusOr<std::string> {
      EXPECT_EQ(port, 9402);
      const std::lock_guard<std::mutex> lock(mutex_);
      const int pod = address.back() - '0';
      ++asked_[pod];
      if (pages_[pod].empty()) return absl::UnavailableError("refused");
      return pages_[pod];
    };
    auto replica = std::make_unique<Controllers>(options, &refusing_api_);
    replica->Start();
    return replica;
  }

  // Something of the pod changes, so that it is asked; until it was.
  bool AskAgain(int pod) {
    const int asked = AskedOf(pod);
    scene_.pods[pod]["metadata"]["creationTimestamp"] =
        absl::FormatTime(absl::FromUnixSeconds(1767225600 + ++changes_), absl::UTCTimeZone());
    api_.Put(Pod(absl::StrCat("train-", pod)), scene_.pods[pod]);
    return Soon([&] { return AskedOf(pod) > asked; });
  }

  Scene scene_;
  int changes_ = 0;
  testing::PatientClock clock_;
  std::atomic<int> later_{0};  // seconds
  std::atomic<int> moved_{0};  // by how many the time of day was set
  kube::testing::FakeApi api_;
  ApiRefusingEvents refusing_api_{&api_};
  std::mutex mutex_;  // guards the two below
  std::map<int, std::string> pages_;
  std::map<int, int> asked_;
};

TEST_F(CollectorTest, TellsOfWhatASpecAndAPageSayAndCountsIt) {
  scene_.UserSets(2, "NCCL_SOCKET_IFNAME", "=eno1");
  verdict::testing::BreakRail(scene_, 1, 3, "port 1 is DOWN", "port");
  AnswerAsTheSceneSays();
  PutScene();
  const auto replica = Replica("a");
  ASSERT_TRUE(Soon([&] { return !Told("train-1").empty() && !Told("train-2").empty(); }));
  EXPECT_THAT(Told("train-1"), ElementsAre("Warning RailUnusable"));
  EXPECT_THAT(Told("train-2"), ElementsAre("Warning SocketInterfaceUnknown"));
  EXPECT_THAT(Told("train-0"), IsEmpty());
  const Json event = api_.In("/api/v1/namespaces/team/events")[0];
  EXPECT_EQ(kube::StringAt(event, {"involvedObject", "uid"}), "uid-1");
  EXPECT_THAT(kube::StringAt(event, {"message"}), HasSubstr("port 1 is DOWN; "));
  EXPECT_THAT(Metric(*replica),
              HasSubstr("railhead_verdict_pods{job=\"train\",namespace=\"team\","
                        "node=\"n1\",rail=\"3\",reason=\"RailUnusable\",severity=\"warning\"} 1"));
  // What is put right is told no more.
  scene_ = Scene();
  AnswerAsTheSceneSays();
  api_.Remove(Pod("train-2"));
  api_.Remove(Pod("train-1"));
  EXPECT_TRUE(Soon([&] {
    return Metric(*replica).find("railhead_verdict_pods{") == std::string::npos;
  })) << Metric(*replica);
}

TEST_F(CollectorTest, AJobWithNothingWrongIsNotTold) {
  AnswerAsTheSceneSays();
  PutScene();
  const auto replica = Replica("a");
  ASSERT_TRUE(KnowsTheScene(*replica));
  ASSERT_TRUE(TellOfAnother("another"));
  for (const Json& event : api_.In("/api/v1/namespaces/team/events")) {
    EXPECT_EQ(kube::StringAt(event, {"involvedObject", "name"}), "another");
  }
}

TEST_F(CollectorTest, APageThatIsNoneBlamesNobodyAndIsCounted) {
  AnswerAsTheSceneSays();
  Answer(1, "<html>it works</html>\nrailhead_runtime_info{ nonsense\n");
  const auto replica = Replica("a");
  ASSERT_TRUE(Soon([&] { return Leads(*replica); }));
  StartPods();
  ASSERT_TRUE(Soon([&] {
    return Metric(*replica).find("pages_total{result=\"unreadable\"} ") != std::string::npos &&
           Metric(*replica).find("pages_total{result=\"unreadable\"} 0") == std::string::npos;
  }));
  // It says nothing that anybody understands, for a minute.
  EXPECT_THAT(Told("train-1"), IsEmpty());
  later_ = 61;
  ASSERT_TRUE(AskAgain(1));
  ASSERT_TRUE(Soon([&] { return !Told("train-1").empty(); }));
  EXPECT_THAT(Told("train-1"), ElementsAre("Warning RuntimeSilent"));
}

TEST_F(CollectorTest, NodesAndProfilesThatChangeAreNews) {
  AnswerAsTheSceneSays();
  PutScene();
  const auto replica = Replica("a");
  ASSERT_TRUE(TellOfAnother("another"));
  EXPECT_THAT(Told("train-3"), IsEmpty());
  Json profile = api_.At(Profile());
  profile["metadata"]["generation"] = 3;
  api_.Put(Profile(), profile);
  // Of what is only to be known one pod of a job is told.
  ASSERT_TRUE(Soon([&] { return !Told("train-0").empty(); }));
  EXPECT_THAT(Told("train-0"), ElementsAre("Normal RailProfileOutdated"));
  EXPECT_THAT(Told("train-3"), IsEmpty());
}

TEST_F(CollectorTest, ALostRailIsToldOfThePodWhoseNicItIs) {
  AnswerAsTheSceneSays();
  PutScene();
  const auto replica = Replica("a");
  ASSERT_TRUE(KnowsTheScene(*replica));
  verdict::testing::LoseRail(scene_, 2, 6, {1, 3});
  AnswerAsTheSceneSays();
  verdict::testing::SetRail(scene_, 2, 6, false, "port 1 is DOWN");
  api_.Put({"v1", "nodes", "", "n2"}, scene_.nodes[2]);
  // What its node's agent says has the pod asked at once, and told when it has lasted.
  ASSERT_TRUE(AskAgain(2));
  ASSERT_TRUE(TellOfAnother("one"));
  EXPECT_THAT(Told("train-2"), IsEmpty());
  later_ = 10;
  ASSERT_TRUE(AskAgain(2));
  ASSERT_TRUE(Soon([&] { return !Told("train-2").empty(); }));
  EXPECT_THAT(Told("train-2"), ElementsAre("Warning RailDown"));
  EXPECT_THAT(Metric(*replica),
              HasSubstr("railhead_verdict_pods{job=\"train\",namespace=\"team\",node=\"n2\","
                        "rail=\"6\",reason=\"RailDown\",severity=\"warning\"} 1"));
  ASSERT_TRUE(AskAgain(1) && AskAgain(3));
  ASSERT_TRUE(TellOfAnother("another"));
  EXPECT_THAT(Told("train-1"), IsEmpty());
  EXPECT_THAT(Told("train-3"), IsEmpty());
}

TEST_F(CollectorTest, ALinkThatFlapsIsNotTold) {
  AnswerAsTheSceneSays();
  PutScene();
  const auto replica = Replica("a");
  ASSERT_TRUE(KnowsTheScene(*replica));
  for (int flap = 1; flap <= 3; ++flap) {
    verdict::testing::SetRail(scene_, 2, 6, false, "port 1 is DOWN");
    verdict::testing::LoseRail(scene_, 2, 6, {1, 3});
    AnswerAsTheSceneSays();
    api_.Put({"v1", "nodes", "", "n2"}, scene_.nodes[2]);
    ASSERT_TRUE(AskAgain(2));
    ASSERT_TRUE(TellOfAnother(absl::StrCat("down-", flap)));
    const auto reports = Scene().reports;
    verdict::testing::SetRail(scene_, 2, 6, true, "");
    scene_.reports = reports;
    AnswerAsTheSceneSays();
    api_.Put({"v1", "nodes", "", "n2"}, scene_.nodes[2]);
    ASSERT_TRUE(KnowsNodes(*replica));
    // Whoever is asked twice has been heard the first time.
    for (const int pod : {1, 2, 3, 1, 2, 3}) ASSERT_TRUE(AskAgain(pod));
    later_ = 60 * flap;
  }
  ASSERT_TRUE(TellOfAnother("another"));
  for (const char* pod : {"train-1", "train-2", "train-3"}) EXPECT_THAT(Told(pod), IsEmpty());
}

TEST_F(CollectorTest, WhatAReportHasRefutedStaysSoWhenTheRuntimeEnds) {
  scene_.pods[1]["spec"]["securityContext"] = {{"runAsUser", 1000}};
  AnswerAsTheSceneSays();
  const auto replica = Replica("a");
  ASSERT_TRUE(Soon([&] { return Leads(*replica); }));
  PutNodes();
  StartPods();
  ASSERT_TRUE(Soon([&] { return AskedOf(1) > 0; }));
  // At first the page names no rank any more, then it is gone.
  for (const char* page : {"railhead_up 1\n", ""}) {
    Answer(1, page);
    for (int i = 0; i < 4; ++i) {
      later_ += 30;
      ASSERT_TRUE(AskAgain(1));
    }
  }
  ASSERT_TRUE(TellOfAnother("another"));
  EXPECT_THAT(Told("train-1"), IsEmpty());
}

TEST_F(CollectorTest, WhoBeginsToLeadAllegesNothingOfPodsThatMayHaveReportedBefore) {
  scene_.pods[1]["spec"]["securityContext"] = {{"runAsUser", 1000}};
  AnswerAsTheSceneSays();
  Answer(1, "");
  PutScene();
  const auto replica = Replica("a");
  ASSERT_TRUE(Soon([&] { return AskedOf(1) > 0; }));
  for (int i = 0; i < 4; ++i) {
    later_ += 30;
    ASSERT_TRUE(AskAgain(1));
  }
  ASSERT_TRUE(TellOfAnother("another"));
  EXPECT_THAT(Told("train-1"), IsEmpty());
}

TEST_F(CollectorTest, ThatTheTimeOfDayWasSetIsNoNews) {
  AnswerAsTheSceneSays();
  Answer(3, "");
  const auto replica = Replica("a");
  ASSERT_TRUE(Soon([&] { return Leads(*replica); }));
  PutNodes();
  StartPods();
  for (const int moved : {-100'000, 100'000}) {
    moved_ = moved;
    ASSERT_TRUE(AskAgain(3));
    ASSERT_TRUE(TellOfAnother(absl::StrCat("another", moved > 0 ? "-later" : "")));
  }
  EXPECT_THAT(Told("train-3"), IsEmpty());
}

TEST_F(CollectorTest, PodsThatWaitAreWarnedOfWhenTheyHaveForLong) {
  scene_.Unschedulable(3, verdict::testing::kNoRoom);
  verdict::testing::OfAPool(scene_);
  verdict::testing::Resource(scene_, "capacity", {{"cpu", "4"}});
  verdict::testing::Resource(scene_, "allocatable", {{"cpu", "4"}});
  PutScene();
  const auto replica = Replica("a");
  ASSERT_TRUE(Soon([&] { return !Told("train-3").empty(); }));
  EXPECT_THAT(Told("train-3"), ElementsAre("Normal RdmaResourceUnknown"));
  later_ = 10 * 60;
  ASSERT_TRUE(AskAgain(0));
  ASSERT_TRUE(Soon([&] { return Told("train-3").size() == 2; }));
  EXPECT_THAT(Told("train-3"), ::testing::UnorderedElementsAre("Normal RdmaResourceUnknown",
                                                               "Warning RdmaResourceUnknown"));
}

TEST_F(CollectorTest, EventsThatAreRefusedAreNotTriedAgainAndAgain) {
  All(scene_, [&](int pod) { scene_.UserSets(pod, "NCCL_SOCKET_IFNAME", "=eno1"); });
  refusing_api_.forbid = true;
  AnswerAsTheSceneSays();
  PutScene();
  const auto replica = Replica("a");
  ASSERT_TRUE(Soon([&] { return refusing_api_.refused > 0; }));
  ASSERT_TRUE(AskAgain(0) && AskAgain(1));
  refusing_api_.forbid = false;
  ASSERT_TRUE(TellOfAnother("another"));
  EXPECT_LE(refusing_api_.refused, 2);  // of two jobs at most
  EXPECT_THAT(Told("train-0"), IsEmpty());
  later_ = 301;
  ASSERT_TRUE(AskAgain(0));
  EXPECT_TRUE(Soon([&] { return !Told("train-0").empty(); }));
}

TEST_F(CollectorTest, APodThatStartedAgainIsGivenTimeAnew) {
  AnswerAsTheSceneSays();
  Answer(3, "");
  const auto replica = Replica("a");
  ASSERT_TRUE(Soon([&] { return Leads(*replica); }));
  PutNodes();
  StartPods();
  ASSERT_TRUE(Soon([&] { return AskedOf(3) > 0; }));
  later_ = 40;
  ASSERT_TRUE(AskAgain(3));
  scene_.pods[3]["status"]["containerStatuses"][0]["state"]["running"]["startedAt"] =
      "2026-01-01T00:30:00Z";
  ASSERT_TRUE(AskAgain(3));
  later_ = 80;
  ASSERT_TRUE(AskAgain(3));
  ASSERT_TRUE(TellOfAnother("another"));
  EXPECT_THAT(Told("train-3"), IsEmpty());
  later_ = 105;
  ASSERT_TRUE(AskAgain(3));
  ASSERT_TRUE(Soon([&] { return !Told("train-3").empty(); }));
  EXPECT_THAT(Told("train-3"), ElementsAre("Warning RuntimeSilent"));
}

TEST_F(CollectorTest, APageOfAnotherPodIsNotBelieved) {
  verdict::testing::BreakRail(scene_, 1, 3, "port 1 is DOWN", "port");
  AnswerAsTheSceneSays();
  // The address of a pod that is gone is another one's now.
  Answer(2, verdict::testing::PageOf(scene_.reports[1]));
  PutScene();
  const auto replica = Replica("a");
  ASSERT_TRUE(Soon([&] { return !Told("train-1").empty() && AskedOf(2) > 0; }));
  ASSERT_TRUE(TellOfAnother("another"));
  EXPECT_THAT(Told("train-1"), ElementsAre("Warning RailUnusable"));
  EXPECT_THAT(Told("train-2"), IsEmpty());
}

TEST_F(CollectorTest, PodsOfADaemonSetAreNotComparedWithEachOther) {
  for (int pod = 0; pod < 4; ++pod) {
    scene_.pods[pod]["metadata"]["ownerReferences"][0]["kind"] = "DaemonSet";
    scene_.WeSet(pod, "NCCL_IB_TC", absl::StrCat(pod));
  }
  scene_.UserSets(3, "NCCL_SOCKET_IFNAME", "=eno1");
  AnswerAsTheSceneSays();
  PutScene();
  const auto replica = Replica("a");
  ASSERT_TRUE(Soon([&] { return !Told("train-3").empty(); }));
  absl::SleepFor(absl::Seconds(3));  // what is compared is judged when no pod was added for two
  ASSERT_TRUE(TellOfAnother("another"));
  EXPECT_THAT(Told("train-3"), ElementsAre("Warning SocketInterfaceUnknown"));
  for (const char* pod : {"train-0", "train-1", "train-2"}) EXPECT_THAT(Told(pod), IsEmpty());
}

TEST_F(CollectorTest, AFaultDoesNotStayInTheReportOfAJobWithoutPods) {
  // Of a fault from before this replica leads.
  api_.Put({"railhead.io/v1alpha1", "railreports", "", "statefulset-gone"},
           {{"metadata",
             {{"name", "statefulset-gone"},
              {"namespace", "team"},
              {"ownerReferences", Json::array({{{"kind", "StatefulSet"}, {"uid", "uid-gone"}}})}}},
            {"status", {{"severity", "Warning"}}}});
  scene_.UserSets(2, "NCCL_SOCKET_IFNAME", "=eno1");
  AnswerAsTheSceneSays();
  PutScene();
  const auto replica = Replica("a");
  ASSERT_TRUE(Soon([&] { return SeverityOf("job-train") == "Warning"; }));
  ASSERT_TRUE(Soon([&] { return SeverityOf("statefulset-gone") == "None"; }));
  for (const char* name : {"train-0", "train-1", "train-2", "train-3"}) api_.Remove(Pod(name));
  later_ = 60;
  EXPECT_TRUE(Soon([&] { return SeverityOf("job-train") == "None"; }));
}

TEST_F(CollectorTest, PodsOfAJobSetsJobsAreComparedWithEachOther) {
  for (int pod = 0; pod < 4; ++pod) {
    Json& metadata = scene_.pods[pod]["metadata"];
    metadata["labels"] = {{"jobset.sigs.k8s.io/jobset-name", "js"},
                          {"jobset.sigs.k8s.io/replicatedjob-name", "w"},
                          {"jobset.sigs.k8s.io/replicatedjob-replicas", "2"},
                          {"jobset.sigs.k8s.io/job-index", absl::StrCat(pod / 2)}};
    metadata["annotations"]["batch.kubernetes.io/job-completion-index"] = absl::StrCat(pod % 2);
    metadata["ownerReferences"][0]["name"] = absl::StrCat("js-w-", pod / 2);
    metadata["ownerReferences"][0]["uid"] = absl::StrCat("uid-job-", pod / 2);
    scene_.WeSet(pod, "NCCL_IB_TC", pod == 3 ? "106" : "105");
  }
  AnswerAsTheSceneSays();
  PutScene();
  const auto replica = Replica("a");
  ASSERT_TRUE(Soon([&] { return !Told("train-3").empty(); }));
  EXPECT_THAT(Told("train-3"), ElementsAre("Warning RdmaEnvironmentDiffers"));
  EXPECT_TRUE(Soon([&] { return SeverityOf("job-js-w") == "Warning"; }));
}

TEST_F(CollectorTest, ExcludedNamespacesAndPodsWithoutRdmaAreNobodysBusiness) {
  Json system = Scene().pods[1];
  system["metadata"]["namespace"] = "kube-system";
  system["metadata"].erase("annotations");
  api_.Put(Pod("train-1"), system);
  Json plain = Scene().pods[2];
  plain["metadata"].erase("annotations");
  plain["spec"]["containers"][0].erase("resources");
  api_.Put(Pod("train-2"), plain);
  const auto replica = Replica("a");
  ASSERT_TRUE(TellOfAnother("another"));
  EXPECT_THAT(Told("train-2"), IsEmpty());
  EXPECT_THAT(api_.In("/api/v1/namespaces/kube-system/events"), IsEmpty());
  EXPECT_EQ(AskedOf(1) + AskedOf(2), 0);
  EXPECT_THAT(Metric(*replica), HasSubstr("railhead_cache_objects{resource=\"pods\"} 1"));
}

TEST_F(CollectorTest, WhoLeadsNextTellsNothingASecondTimeAndWhoDoesNotLeadAsksNobody) {
  scene_.UserSets(2, "NCCL_SOCKET_IFNAME", "=eno1");
  AnswerAsTheSceneSays();
  PutScene();
  auto first = Replica("a");
  ASSERT_TRUE(Soon([&] { return !Told("train-2").empty(); }));
  const auto second = Replica("b");
  ASSERT_TRUE(Soon([&] { return second->Synced().ok(); }));
  EXPECT_THAT(Metric(*second), Not(HasSubstr("railhead_verdict_pods{")));
  EXPECT_THAT(Metric(*second), HasSubstr("railhead_verdict_pages_total{result=\"ok\"} 0"));
  first.reset();
  ASSERT_TRUE(TellOfAnother("another"));  // by the second
  EXPECT_TRUE(Soon([&] {
    return Metric(*second).find("reason=\"SocketInterfaceUnknown\"") != std::string::npos;
  }));
  EXPECT_THAT(Told("train-2"), ElementsAre("Warning SocketInterfaceUnknown"));
  for (const Json& event : api_.In("/api/v1/namespaces/team/events")) EXPECT_EQ(event["count"], 1);
  for (const std::string& call : api_.TakeCalls()) {
    if (call.find("/events") == std::string::npos) continue;
    EXPECT_THAT(call, HasSubstr("POST "));
  }
}

TEST_F(CollectorTest, WhatTheServerDidNotTakeIsToldLater) {
  scene_.UserSets(2, "NCCL_SOCKET_IFNAME", "=eno1");
  refusing_api_.refuse = 2;
  PutScene();
  const auto replica = Replica("a");
  ASSERT_TRUE(Soon([&] { return !Told("train-2").empty(); }));
  EXPECT_EQ(refusing_api_.refuse, 0);
  EXPECT_THAT(Told("train-2"), ElementsAre("Warning SocketInterfaceUnknown"));
}

}  // namespace
}  // namespace railhead::op
