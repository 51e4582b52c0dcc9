// SPDX-License-Identifier: Apache-2.0
#include "operator/control/controllers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ringbuffer_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "kube/json.h"
#include "kube/testing/fake_api.h"
#include "kube/testing/soon.h"

namespace railhead::op {
namespace {

using kube::Json;
using kube::testing::Soon;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAreArray;

// The server, but for the writes to one status that it refuses.
class RefusingApi final : public kube::Api {
 public:
  explicit RefusingApi(kube::Api* api) : api_(api) {}
  absl::StatusOr<Json> Call(const kube::ApiRequest& request) override {
    if (refusing && request.path.find("/refused/status") != std::string::npos) {
      ++refused;
      return absl::UnavailableError("no room");
    }
    return api_->Call(request);
  }
  absl::Status Stream(const kube::StreamRequest& request,
                      const std::function<absl::Status(absl::string_view)>& on_bytes) override {
    return api_->Stream(request, on_bytes);
  }

  std::atomic<bool> refusing{true};
  std::atomic<int> refused{0};

 private:
  kube::Api* const api_;
};

// What is logged meanwhile, beside being logged as usual. No thread may log at its begin and end.
class LogCopy {
 public:
  LogCopy() { spdlog::default_logger()->sinks().push_back(lines_); }
  ~LogCopy() { spdlog::default_logger()->sinks().pop_back(); }
  LogCopy(const LogCopy&) = delete;
  LogCopy& operator=(const LogCopy&) = delete;
  std::vector<std::string> Lines() const { return lines_->last_formatted(); }

 private:
  const std::shared_ptr<spdlog::sinks::ringbuffer_sink_mt> lines_ =
      std::make_shared<spdlog::sinks::ringbuffer_sink_mt>(1000);
};

class ControllersTest : public ::testing::Test {
 protected:
  static kube::ObjectRef Profile(const std::string& name) {
    return {"railhead.io/v1alpha1", "railprofiles", "", name};
  }
  static kube::ObjectRef Status(const std::string& name) {
    return {"railhead.io/v1alpha1", "railprofiles", "", name, "status"};
  }
  // What was applied: "True of 3", with the generation; empty when nothing was.
  std::string Condition(const std::string& name, const std::string& type) const {
    for (const Json& status : api_.In(Profile(name).Path())) {
      for (const Json& condition : status["status"]["conditions"]) {
        if (condition["type"] != type) continue;
        return kube::StringAt(condition, {"status"}) + " of " +
               condition["observedGeneration"].dump();
      }
    }
    return "";
  }
  // The status becomes part of the profile.
  void Reflect(const std::string& name) {
    Json object = api_.At(Profile(name));
    object["status"] = api_.At(Status(name))["status"];
    api_.Put(Profile(name), object);
  }
  void PutProfile(const std::string& name, int generation, const std::string& fabric = "RoCE") {
    Json object = Json::parse(R"({"apiVersion": "railhead.io/v1alpha1", "kind": "RailProfile",
      "metadata": {}, "spec": {"namespaceSelector": {"matchLabels": {"team": "ml"}}}})");
    object["metadata"] = {{"name", name}, {"generation", generation}};
    object["spec"]["fabric"] = fabric;
    api_.Put(Profile(name), object);
  }
  void PutLabelled(const std::string& resource, const std::string& name, const Json& labels) {
    api_.Put({"v1", resource, "", name}, {{"metadata", {{"name", name}, {"labels", labels}}}});
  }
  // Whether the set of this moment is like that.
  bool Shows(const std::function<bool(const ProfileSet&)>& like) const {
    return Soon([&] {
      const std::shared_ptr<const ProfileSet> set = controllers_.Profiles();
      return set != nullptr && like(*set);
    });
  }
  std::string Metric() const {
    Metrics metrics;
    controllers_.Report(metrics);
    return metrics.Text();
  }

  // How often the status of a profile was written since this was last asked.
  int TakeWrites(const std::string& name) {
    int writes = 0;
    for (const std::string& call : api_.TakeCalls()) {
      writes += call.find("/" + name + "/status") != std::string::npos ? 1 : 0;
    }
    return writes;
  }

  kube::testing::FakeApi api_;
  RefusingApi refusing_api_{&api_};
  LogCopy log_;
  std::atomic<int> seconds_{0};  // what the clock shows; it stands
  Controllers controllers_{
      {"sys", "op", "me", [this] { return absl::UnixEpoch() + absl::Seconds(seconds_.load()); }},
      &refusing_api_};
};

TEST_F(ControllersTest, ShowsWhatIsInTheCluster) {
  PutProfile("p", 2);
  PutProfile("wrong", 5, "Token Ring");
  PutLabelled("namespaces", "train", {{"team", "ml"}});
  PutLabelled("nodes", "n0", {{"railhead.io/rails", "8"}, {"railhead.io/link-layer", "Ethernet"}});
  PutLabelled("nodes", "cpu-only", {{"zone", "a"}});
  EXPECT_EQ(controllers_.Profiles(), nullptr);
  controllers_.Start();
  ASSERT_TRUE(Soon([&] { return controllers_.Synced().ok(); }));
  const std::shared_ptr<const ProfileSet> set = controllers_.Profiles();
  ASSERT_NE(set, nullptr);
  ASSERT_EQ(set->profiles.size(), 1U);  // the wrong one is left out
  EXPECT_EQ(set->profiles[0].name, "p");
  EXPECT_EQ(set->profiles[0].generation, 2);
  EXPECT_EQ(set->NamespaceLabels("train").at("team"), "ml");
  EXPECT_EQ(set->facts.nodes, 1);
  EXPECT_EQ(set->facts.link_layers.at("Ethernet"), 1);
  EXPECT_THAT(Metric(), AllOf(HasSubstr("railhead_cache_synced{resource=\"railprofiles\"} 1"),
                              HasSubstr("railhead_cache_objects{resource=\"railprofiles\"} 2"),
                              HasSubstr("railhead_cache_objects{resource=\"nodes\"} 2"),
                              HasSubstr("railhead_profiles{state=\"accepted\"} 1"),
                              HasSubstr("railhead_profiles{state=\"refused\"} 1")));
}

TEST_F(ControllersTest, TheLeaderTellsTheProfilesWhatBecameOfThemAndNotTwice) {
  PutLabelled("namespaces", "train", {{"team", "ml"}});
  PutProfile("p", 2);
  PutProfile("wrong", 5, "Token Ring");
  controllers_.Start();
  ASSERT_TRUE(Soon([&] { return Condition("p", "Accepted") == "True of 2"; }));
  ASSERT_TRUE(Soon([&] { return Condition("wrong", "Accepted") == "False of 5"; }));
  EXPECT_EQ(Condition("p", "Conflicts"), "False of 2");
  EXPECT_THAT(Metric(), HasSubstr("railhead_leader 1"));

  // As the API server does, the profiles show what was applied; it is not applied again.
  for (const char* name : {"p", "wrong"}) Reflect(name);
  ASSERT_TRUE(Shows([](const ProfileSet& set) { return set.profiles.size() == 1; }));
  api_.TakeCalls();
  PutProfile("q", 1);  // of the same priority
  ASSERT_TRUE(Soon([&] { return Condition("q", "Conflicts") == "True of 1"; }));
  seconds_ += 10;
  PutLabelled("namespaces", "news", {});
  ASSERT_TRUE(Soon([&] { return Condition("p", "Conflicts") == "True of 2"; }));
  EXPECT_THAT(Metric(), HasSubstr("railhead_profiles{state=\"conflicting\"} 2"));
  for (const std::string& call : api_.TakeCalls()) EXPECT_THAT(call, Not(HasSubstr("wrong")));
}

// The test is the other operator: what was written to the profile is not what the profile shows.
TEST_F(ControllersTest, WhoeverDisagreesAProfileIsNotWrittenToWithoutEnd) {
  PutProfile("p", 1);
  controllers_.Start();
  ASSERT_TRUE(Soon([&] { return Condition("p", "Accepted") == "True of 1"; }));
  EXPECT_EQ(TakeWrites("p"), 1);
  for (int i = 0; i < 3; ++i) {
    // Two of one batch are looked at in the order of their names.
    PutProfile("p", 2 + i);
    const std::string later = "q" + std::to_string(i);
    PutProfile(later, 1);
    ASSERT_TRUE(Soon([&] { return Condition(later, "Accepted") == "True of 1"; }));
  }
  EXPECT_EQ(TakeWrites("p"), 0);
  seconds_ += 10;
  PutProfile("r", 1);
  EXPECT_TRUE(Soon([&] { return Condition("p", "Accepted") == "True of 4"; }));
  EXPECT_EQ(TakeWrites("p"), 1);
}

TEST_F(ControllersTest, NewsDoNotMakeAFailedWriteComeEarlierAndItsTroubleIsToldOnce) {
  PutProfile("refused", 1);
  controllers_.Start();
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(Soon([&] { return refusing_api_.refused == i + 1; }));
    for (const char* letter : {"s", "t"}) {
      const std::string later = std::string(letter) + std::to_string(i);
      PutProfile(later, 1);
      ASSERT_TRUE(Soon([&] { return Condition(later, "Accepted") == "True of 1"; }));
    }
    EXPECT_EQ(refusing_api_.refused, i + 1);
    refusing_api_.refusing = i < 2;
    seconds_ += 30;
    PutProfile("u" + std::to_string(i), 1);
  }
  EXPECT_TRUE(Soon([&] { return Condition("refused", "Accepted") == "True of 1"; }));
  int told = 0;
  for (const std::string& line : log_.Lines()) {
    told += line.find("RailProfile refused: no room") != std::string::npos ? 1 : 0;
  }
  EXPECT_EQ(told, 1);
}

TEST_F(ControllersTest, WhoDoesNotLeadWritesNothingUntilItDoes) {
  const auto hold = [&](const std::string& holder) {
    api_.Put({"coordination.k8s.io/v1", "leases", "sys", "op"},
             {{"metadata", {{"name", "op"}, {"namespace", "sys"}}},
              {"spec", {{"holderIdentity", holder}, {"leaseDurationSeconds", 3600}}}});
  };
  hold("another");
  PutProfile("p", 2);
  controllers_.Start();
  ASSERT_TRUE(Shows([](const ProfileSet& set) { return set.profiles.size() == 1; }));
  PutProfile("p", 3);
  ASSERT_TRUE(Shows([](const ProfileSet& set) { return set.profiles.at(0).generation == 3; }));
  EXPECT_EQ(Condition("p", "Accepted"), "");
  EXPECT_THAT(Metric(), HasSubstr("railhead_leader 0"));
  hold("");  // it goes
  EXPECT_TRUE(Soon([&] { return Condition("p", "Accepted") == "True of 3"; }));
  EXPECT_EQ(kube::StringAt(api_.At(Status("p")), {"metadata", "resourceVersion"}),
            kube::StringAt(api_.At(Profile("p")), {"metadata", "resourceVersion"}));
}

TEST_F(ControllersTest, FollowsChangesAndLeavesWhatWasHandedOutAlone) {
  PutProfile("p", 1);
  controllers_.Start();
  ASSERT_TRUE(Shows([](const ProfileSet& set) { return set.profiles.size() == 1; }));
  const std::shared_ptr<const ProfileSet> old = controllers_.Profiles();
  PutProfile("p", 2);
  EXPECT_TRUE(Shows([](const ProfileSet& set) { return set.profiles.at(0).generation == 2; }));
  PutLabelled("namespaces", "train", {{"team", "ml"}});
  EXPECT_TRUE(Shows([](const ProfileSet& set) { return set.namespaces.count("train") == 1; }));
  PutLabelled("nodes", "n0", {{"railhead.io/rails", "8"}});
  EXPECT_TRUE(Shows([](const ProfileSet& set) { return set.facts.nodes == 1; }));
  PutLabelled("nodes", "n0", {{"railhead.io/rails", "0"}});
  EXPECT_TRUE(Shows([](const ProfileSet& set) { return set.facts.nodes == 0; }));
  api_.Remove(Profile("p"));
  EXPECT_TRUE(Shows([](const ProfileSet& set) { return set.profiles.empty(); }));
  EXPECT_EQ(old->profiles.at(0).generation, 1);
}

TEST_F(ControllersTest, ShowsNothingUntilAllIsKnownAndTheLastWhileTheServerIsAway) {
  PutProfile("p", 1);
  api_.SetOutage(absl::UnavailableError("nobody there"));
  controllers_.Start();
  ASSERT_TRUE(Soon([&] {
    const std::string why(controllers_.Synced().message());
    return why.find("railprofiles is not complete: nobody there") != std::string::npos &&
           why.find("namespaces is not complete: nobody there") != std::string::npos &&
           why.find("nodes is not complete: nobody there") != std::string::npos;
  })) << controllers_.Synced();
  EXPECT_EQ(controllers_.Profiles(), nullptr);
  EXPECT_THAT(Metric(), AllOf(HasSubstr("railhead_cache_synced{resource=\"nodes\"} 0"),
                              HasSubstr("railhead_cache_age_seconds{resource=\"nodes\"} +Inf")));
  api_.SetOutage(absl::OkStatus());
  ASSERT_TRUE(Shows([](const ProfileSet& set) { return set.profiles.size() == 1; }));
  api_.SetOutage(absl::UnavailableError("nobody there"));
  api_.TakeCalls();
  ASSERT_TRUE(Soon([&] { return !api_.TakeCalls().empty(); }));  // it has noticed
  EXPECT_TRUE(controllers_.Synced().ok());
  EXPECT_EQ(controllers_.Profiles()->profiles.size(), 1U);
}

struct Asked {
  int lists = 0;
  int watches = 0;
};

// How often each kind was listed and watched, of those that were watched.
std::map<std::string, Asked> AskedOf(const std::vector<std::string>& calls) {
  std::map<std::string, Asked> asked;
  for (const std::string& call : calls) {
    const std::string path = call.substr(0, call.find('?'));
    Asked& kind = asked[path.substr(path.rfind('/') + 1)];
    if (absl::StartsWith(call, "WATCH ")) ++kind.watches;
    if (absl::StrContains(call, "?limit=") && !absl::StrContains(call, "&continue=")) ++kind.lists;
  }
  std::erase_if(asked, [](const auto& kind) { return kind.second.watches == 0; });
  return asked;
}

struct Readers {
  bool verdicts = false;
  bool gangs = false;
  bool topology = false;
  std::vector<std::string> kinds;
};

class OneWatchTest : public ::testing::TestWithParam<Readers> {};

// Whoever looks at a kind, a replica lists and watches it once, also after an outage in which the
// server has lost the version that the watches were at.
TEST_P(OneWatchTest, OfEachKindThatIsLookedAt) {
  kube::testing::FakeApi api;
  for (const char* name : {"n0", "n1"}) {
    api.Put({"v1", "nodes", "", name}, {{"metadata", {{"name", name}}}});
  }
  ControllersOptions options;
  options.space = "sys";
  options.lease = "op";
  options.identity = "me";
  options.verdicts = GetParam().verdicts;
  options.gangs = GetParam().gangs;
  options.topology = GetParam().topology;

  Controllers controllers(options, &api);
  controllers.Start();
  std::vector<std::string> calls;
  const auto all_watched = [&] {
    for (std::string& call : api.TakeCalls()) calls.push_back(std::move(call));
    const std::map<std::string, Asked> asked = AskedOf(calls);
    return std::all_of(GetParam().kinds.begin(), GetParam().kinds.end(), [&](const auto& kind) {
      return asked.contains(kind) && asked.at(kind).lists > 0;
    });
  };
  ASSERT_TRUE(Soon(all_watched));
  const std::map<std::string, Asked> first = AskedOf(calls);
  EXPECT_EQ(first.size(), GetParam().kinds.size());
  for (const auto& [kind, asked] : first) {
    EXPECT_EQ(asked.lists, 1) << kind;
    EXPECT_EQ(asked.watches, 1) << kind;
  }

  api.SetOutage(absl::UnavailableError("nobody there"));
  api.Put({"v1", "nodes", "", "n2"}, {{"metadata", {{"name", "n2"}}}});
  api.Compact();
  api.TakeCalls();
  calls.clear();
  api.SetOutage(absl::OkStatus());
  ASSERT_TRUE(Soon(all_watched));
  for (const auto& [kind, asked] : AskedOf(calls)) EXPECT_EQ(asked.lists, 1) << kind;

  Metrics metrics;
  controllers.Report(metrics);
  std::vector<std::string> synced;
  const std::string text = metrics.Text();
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (absl::ConsumePrefix(&line, "railhead_cache_synced{resource=\"")) {
      synced.emplace_back(line.substr(0, line.find('"')));
    }
  }
  EXPECT_THAT(synced, UnorderedElementsAreArray(GetParam().kinds));
}

INSTANTIATE_TEST_SUITE_P(
    Readers, OneWatchTest,
    ::testing::Values(
        Readers{false, false, false, {"railprofiles", "namespaces", "nodes"}},
        Readers{true, false, false, {"railprofiles", "namespaces", "nodes", "pods"}},
        Readers{false, true, false, {"railprofiles", "namespaces", "nodes", "pods"}},
        Readers{false, false, true, {"railprofiles", "namespaces", "nodes", "fabrictopologies"}},
        Readers{true,
                true,
                true,
                {"railprofiles", "namespaces", "nodes", "pods", "fabrictopologies"}}));

TEST_F(ControllersTest, OnlyProfilesMayBeOfAKindThatTheServerDoesNotKnow) {
  api_.SetOutage(absl::NotFoundError("no such kind"));
  controllers_.Start();
  EXPECT_TRUE(Soon([&] {
    return controllers_.Synced().message() ==
           "the first list of namespaces is not complete: no such kind; "
           "the first list of nodes is not complete: no such kind";
  })) << controllers_.Synced();
}

}  // namespace
}  // namespace railhead::op
