// SPDX-License-Identifier: Apache-2.0
#include "operator/collector/report_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "kube/testing/fake_api.h"
#include "kube/testing/soon.h"
#include "operator/collector/testing/patient_clock.h"

namespace railhead::op {
namespace {

using kube::Json;
using kube::testing::Soon;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// An API server of which some answers are lost: the write takes effect.
class LossyApi final : public kube::Api {
 public:
  explicit LossyApi(kube::Api* api) : api_(api) {}
  absl::StatusOr<Json> Call(const kube::ApiRequest& request) override {
    absl::StatusOr<Json> answer = api_->Call(request);
    if (absl::StrContains(request.path, "/status") && after_status) {
      std::exchange(after_status, nullptr)();
    }
    if (absl::StrContains(request.path, "/status") && --lost >= 0) {
      return absl::DeadlineExceededError("no complete answer within 5s");
    }
    if (absl::StrContains(request.path, "/status") && --gone >= 0) {
      return absl::NotFoundError("404");
    }
    return answer;
  }
  absl::Status Stream(const kube::StreamRequest& request,
                      const std::function<absl::Status(absl::string_view)>& on_bytes) override {
    return api_->Stream(request, on_bytes);
  }

  std::atomic<int> lost{0};  // answers to the next writes of a status
  std::atomic<int> gone{0};  // likewise: somebody has removed the reports
  // Runs once, between the next write of a status and its answer. Set it before there is one, or
  // there.
  std::function<void()> after_status;

 private:
  kube::Api* const api_;
};

class ReportWriterTest : public ::testing::Test {
 protected:
  ReportWriterTest() : thread_([this] { writer_.Run(); }) {}
  ~ReportWriterTest() override {
    writer_.ShutDown();
    thread_.join();
  }

  static RailReport ReportOn(const std::string& job, const std::string& reason) {
    RailReport report;
    report.space = "team";
    report.name = job;
    report.owners = Json::parse(R"([{"apiVersion": "batch/v1", "kind": "Job", "name": "a"}])");
    report.owners[0]["uid"] = absl::StrCat("uid-", job);
    report.is_clear = reason.empty();
    report.status = {
        {"severity", reason.empty() ? "None" : "Warning"}, {"pods", 4}, {"reasons", Json::array()}};
    if (!reason.empty()) {
      report.status["reasons"].push_back(
          {{"reason", reason}, {"severity", "Warning"}, {"pods", 1}});
    }
    return report;
  }
  static kube::ObjectRef Object(const std::string& job) {
    return {kRailReportVersion, "railreports", "", job};
  }
  // What a server has of a report that stands there.
  void Stands(const RailReport& report) {
    api_.Put(
        Object(report.name),
        {{"apiVersion", kRailReportVersion},
         {"kind", kRailReportKind},
         {"metadata",
          {{"name", report.name}, {"namespace", report.space}, {"ownerReferences", report.owners}}},
         {"status", report.status}});
  }
  // The writes so far, as "PATCH path".
  std::vector<std::string> Writes() {
    for (std::string& call : api_.TakeCalls()) {
      if (absl::StartsWith(call, "PATCH")) writes_.push_back(call.substr(0, call.find('?')));
    }
    return writes_;
  }
  // All that was asked for before has been done.
  void WaitForAll() {
    const std::string last = absl::StrCat("last-", ++last_);
    writer_.Put(last, ReportOn(last, "RailDown"));
    ASSERT_TRUE(Soon([&] {
      for (const std::string& call : Writes()) {
        if (absl::EndsWith(call, absl::StrCat(last, "/status"))) return true;
      }
      return false;
    }));
    std::erase_if(writes_, [&](const std::string& call) { return absl::StrContains(call, last); });
  }

  // The severity in the server's copy.
  std::string SeverityOf(const std::string& report) {
    for (const Json& status :
         api_.In(absl::StrCat("/apis/railhead.io/v1alpha1/namespaces/team/railreports/", report))) {
      return kube::StringAt(status, {"status", "severity"});
    }
    return "";
  }

  int last_ = 0;
  std::vector<std::string> writes_;
  kube::testing::FakeApi api_;
  LossyApi lossy_{&api_};
  std::atomic<bool> leads_{true};
  testing::PatientClock clock_;
  std::atomic<int> seconds_{0};
  std::atomic<bool> knows_pods_{false};
  ReportWriter writer_{&lossy_,
                       {},
                       [this] { return leads_.load(); },
                       [this] { return clock_.Now() + absl::Seconds(seconds_.load()); },
                       [this]() -> std::optional<std::set<std::string>> {
                         if (!knows_pods_) return std::nullopt;
                         return std::set<std::string>{"team/used"};
                       }};
  std::thread thread_;
};

constexpr char kPath[] = "PATCH /apis/railhead.io/v1alpha1/namespaces/team/railreports/";

TEST_F(ReportWriterTest, AReportIsMadeOnceAndThenItsStatusIsWritten) {
  writer_.OnLead();
  writer_.Put("a", ReportOn("a", "RailDown"));
  WaitForAll();
  EXPECT_EQ(Writes(),
            (std::vector<std::string>{absl::StrCat(kPath, "a"), absl::StrCat(kPath, "a/status")}));
  writer_.Put("a", ReportOn("a", "RailDown"));
  WaitForAll();
  EXPECT_THAT(Writes(), SizeIs(2));
  seconds_ = 60;
  writer_.Put("a", ReportOn("a", ""));
  WaitForAll();
  EXPECT_THAT(Writes(), SizeIs(3));
  EXPECT_EQ(Writes()[2], absl::StrCat(kPath, "a/status"));
}

TEST_F(ReportWriterTest, AJobThatIsWellAndAlwaysWasHasNone) {
  writer_.Put("before", ReportOn("before", ""));
  writer_.OnLead();
  writer_.Put("a", ReportOn("a", ""));
  WaitForAll();
  EXPECT_THAT(Writes(), IsEmpty());
}

TEST_F(ReportWriterTest, WhatAnotherReplicaWroteIsKnownAndMended) {
  Stands(ReportOn("same", "RailDown"));
  Stands(ReportOn("mended", "RailDown"));
  Stands(ReportOn("clear", ""));
  writer_.OnLead();
  writer_.Put("same", ReportOn("same", "RailDown"));
  writer_.Put("mended", ReportOn("mended", ""));
  writer_.Put("clear", ReportOn("clear", ""));
  WaitForAll();
  EXPECT_EQ(Writes(), std::vector<std::string>{absl::StrCat(kPath, "mended/status")});
}

TEST_F(ReportWriterTest, WhatIsNotKnownIsNotTakenBack) {
  Stands(ReportOn("a", "RailDown"));
  writer_.OnLead();
  RailReport unknown = ReportOn("a", "");
  unknown.is_certain = false;
  writer_.Put("a", unknown);
  WaitForAll();
  const auto status = [this] {
    return api_.At({kRailReportVersion, "railreports", "team", "a", "status"})["status"];
  };
  EXPECT_EQ(status()["severity"], "Warning");  // with a summary, which it had not
  seconds_ = 60;
  writer_.Put("a", ReportOn("a", ""));
  WaitForAll();
  EXPECT_EQ(status()["severity"], "None");
}

TEST_F(ReportWriterTest, AnotherJobOfTheSameNameTakesTheReportOver) {
  RailReport old = ReportOn("a", "RailDown");
  old.owners[0]["uid"] = "uid-before";
  Stands(old);
  writer_.OnLead();
  writer_.Put("a", ReportOn("a", "RailDown"));
  WaitForAll();
  EXPECT_EQ(Writes()[0], absl::StrCat(kPath, "a"));
}

TEST_F(ReportWriterTest, ReportsOfJobsThatWereMendedKeepNoneFromBeingMade) {
  for (int i = 0; i < 2100; ++i) Stands(ReportOn(absl::StrCat("mended-", i), ""));
  writer_.OnLead();
  writer_.Put("a", ReportOn("a", "RailDown"));
  ASSERT_TRUE(Soon([&] { return Writes().size() >= 2; }));
  EXPECT_EQ(Writes()[0], absl::StrCat(kPath, "a"));
}

TEST_F(ReportWriterTest, NoMoreThanSoManySayThatSomethingIsWrongAndWhoGoesMakesRoom) {
  for (int i = 0; i < 500; ++i) Stands(ReportOn(absl::StrCat("wrong-", i), "RailDown"));
  writer_.OnLead();
  writer_.Put("wrong-7", ReportOn("wrong-7", "RailFlaky"));
  ASSERT_TRUE(Soon([&] { return Writes().size() == 1; }));
  writer_.Put("a", ReportOn("a", "RailDown"));
  writer_.Put("wrong-8", ReportOn("wrong-8", "RailFlaky"));
  ASSERT_TRUE(Soon([&] { return Writes().size() == 2; }));
  EXPECT_EQ(Writes()[1], absl::StrCat(kPath, "wrong-8/status"));
  seconds_ = 60;
  writer_.Forget("wrong-7");
  ASSERT_TRUE(Soon([&] { return Writes().size() == 3; }));
  EXPECT_EQ(Writes()[2], absl::StrCat(kPath, "wrong-7/status"));
  writer_.Put("a", ReportOn("a", "RailDown"));
  ASSERT_TRUE(Soon([&] { return Writes().size() >= 5; }));
  EXPECT_EQ(Writes()[3], absl::StrCat(kPath, "a"));
}

TEST_F(ReportWriterTest, ANamespaceThatHasAllItMayHaveKeepsNoneOfAnotherFromBeingMade) {
  for (int i = 0; i < 500; ++i) Stands(ReportOn(absl::StrCat("lies-", i), "RailDown"));
  writer_.OnLead();
  RailReport quiet = ReportOn("a", "RailDown");
  quiet.space = "quiet";
  writer_.Put("more-lies", ReportOn("more-lies", "RailDown"));
  writer_.Put("a", quiet);
  ASSERT_TRUE(Soon([&] { return Writes().size() >= 2; }));
  EXPECT_EQ(Writes()[0], "PATCH /apis/railhead.io/v1alpha1/namespaces/quiet/railreports/a");
}

TEST_F(ReportWriterTest, AJobThatIsMendedAndGoesIsForgotten) {
  writer_.OnLead();
  writer_.Put("a", ReportOn("a", "RailDown"));
  WaitForAll();
  seconds_ = 60;
  writer_.Put("a", ReportOn("a", ""));
  WaitForAll();
  writer_.Put("a", ReportOn("a", ""));
  // The cluster removes the report with its job, and there is another one of the same name.
  writer_.Forget("a");
  writes_.clear();
  seconds_ = 120;
  writer_.Put("again", ReportOn("a", "RailDown"));
  WaitForAll();
  EXPECT_EQ(Writes(),
            (std::vector<std::string>{absl::StrCat(kPath, "a"), absl::StrCat(kPath, "a/status")}));
}

TEST_F(ReportWriterTest, OwnersStayAsLongAsOneOfThemIsThere) {
  const auto owned_by = [](const std::vector<std::string>& pods, const std::string& reason) {
    RailReport report = ReportOn("gang", reason);
    report.owners = Json::array();
    for (const std::string& pod : pods) {
      report.owners.push_back(
          {{"apiVersion", "v1"}, {"kind", "Pod"}, {"name", pod}, {"uid", "uid-" + pod}});
    }
    return report;
  };
  Stands(owned_by({"p0", "p1"}, "RailDown"));
  writer_.OnLead();
  writer_.Put("gang", owned_by({"p1", "p2"}, "RailFlaky"));
  WaitForAll();
  EXPECT_EQ(Writes(), std::vector<std::string>{absl::StrCat(kPath, "gang/status")});
  seconds_ = 60;
  writer_.Put("gang", owned_by({"p2", "p3"}, "RailFlaky"));
  WaitForAll();
  EXPECT_THAT(Writes(), SizeIs(3));
  EXPECT_EQ(Writes()[1], absl::StrCat(kPath, "gang"));
}

TEST_F(ReportWriterTest, AFaultDoesNotStayWhenItsPodsAreGone) {
  writer_.OnLead();
  writer_.Put("a", ReportOn("a", "RdmaResourceUnknown"));
  RailReport of_pods = ReportOn("gang", "RailDown");
  of_pods.owners[0]["kind"] = "Pod";
  writer_.Put("gang", of_pods);
  WaitForAll();
  EXPECT_EQ(SeverityOf("a"), "Warning");
  seconds_ = 60;
  writer_.Forget("a");
  writer_.Forget("gang");  // goes with its pods
  ASSERT_TRUE(Soon([&] { return SeverityOf("a") == "None"; }));
  WaitForAll();
  EXPECT_EQ(SeverityOf("gang"), "Warning");
  // There are pods again.
  seconds_ = 120;
  writer_.Put("a", ReportOn("a", "RailDown"));
  EXPECT_TRUE(Soon([&] { return SeverityOf("a") == "Warning"; }));
}

TEST_F(ReportWriterTest, PodsThatComeBackKeepTheReport) {
  writer_.OnLead();
  writer_.Put("a", ReportOn("a", "RailDown"));
  WaitForAll();
  writer_.Forget("a");  // within the ten seconds between two writes
  writer_.Put("a", ReportOn("a", "RailDown"));
  seconds_ = 60;
  WaitForAll();
  EXPECT_EQ(SeverityOf("a"), "Warning");
  EXPECT_THAT(Writes(), SizeIs(2));
}

TEST_F(ReportWriterTest, WhoBeginsToLeadClearsReportsWithoutPods) {
  Stands(ReportOn("gone", "RailDown"));
  Stands(ReportOn("used", "RailDown"));
  Stands(ReportOn("known", "RailDown"));
  Stands(ReportOn("clear", ""));
  writer_.OnLead();
  writer_.Put("known", ReportOn("known", "RailDown"));
  WaitForAll();
  EXPECT_THAT(Writes(), IsEmpty());  // which pods there are is not known yet
  knows_pods_ = true;
  seconds_ = 60;
  ASSERT_TRUE(Soon([&] {
    WaitForAll();
    return SeverityOf("gone") == "None";
  }));
  EXPECT_EQ(Writes(), std::vector<std::string>{absl::StrCat(kPath, "gone/status")});
  seconds_ = 120;
  writer_.Put("another", ReportOn("gone", "RailDown"));
  EXPECT_TRUE(Soon([&] { return SeverityOf("gone") == "Warning"; }));
}

TEST_F(ReportWriterTest, AFaultThatIsOverBeforeItsLostAnswerIsKnownDoesNotStay) {
  writer_.OnLead();
  lossy_.lost = 1;
  writer_.Put("a", ReportOn("a", "RailDown"));
  ASSERT_TRUE(Soon([&] { return SeverityOf("a") == "Warning"; }));
  ASSERT_TRUE(Soon([&] { return lossy_.lost < 1; }));
  absl::SleepFor(absl::Milliseconds(50));  // less than until the next try
  writer_.Put("a", ReportOn("a", ""));
  EXPECT_TRUE(Soon([&] { return SeverityOf("a") == "None"; }));
}

TEST_F(ReportWriterTest, AFaultThatIsOverWhileItIsWrittenDoesNotStay) {
  lossy_.after_status = [this] { writer_.Put("a", ReportOn("a", "")); };
  writer_.OnLead();
  writer_.Put("a", ReportOn("a", "RailDown"));
  ASSERT_TRUE(Soon([&] { return SeverityOf("a") == "Warning"; }));
  seconds_ = 60;
  EXPECT_TRUE(Soon([&] { return SeverityOf("a") == "None"; }));
}

TEST_F(ReportWriterTest, AFaultThatIsBackBeforeTheLostAnswerIsKnownIsWritten) {
  writer_.OnLead();
  writer_.Put("a", ReportOn("a", "RailDown"));
  WaitForAll();
  lossy_.lost = 1;
  seconds_ = 60;
  writer_.Put("a", ReportOn("a", ""));
  ASSERT_TRUE(Soon([&] { return SeverityOf("a") == "None"; }));
  ASSERT_TRUE(Soon([&] { return lossy_.lost < 1; }));
  absl::SleepFor(absl::Milliseconds(50));
  writer_.Put("a", ReportOn("a", "RailDown"));
  EXPECT_TRUE(Soon([&] { return SeverityOf("a") == "Warning"; }));
}

TEST_F(ReportWriterTest, AFaultWhosePodsGoBeforeItsLostAnswerIsKnownDoesNotStay) {
  writer_.OnLead();
  writer_.Put("a", ReportOn("a", "RailDown"));
  WaitForAll();
  seconds_ = 60;
  writer_.Put("a", ReportOn("a", ""));
  WaitForAll();
  ASSERT_EQ(SeverityOf("a"), "None");
  lossy_.lost = 1;
  seconds_ = 120;
  writer_.Put("a", ReportOn("a", "RailDown"));
  ASSERT_TRUE(Soon([&] { return SeverityOf("a") == "Warning"; }));
  ASSERT_TRUE(Soon([&] { return lossy_.lost < 1; }));
  absl::SleepFor(absl::Milliseconds(50));  // less than until the next try
  writer_.Forget("a");
  EXPECT_TRUE(Soon([&] { return SeverityOf("a") == "None"; }));
}

TEST_F(ReportWriterTest, PodsThatComeBackWhileTheLastReportIsFoundGoneHaveOneAgain) {
  lossy_.after_status = [this] {
    lossy_.after_status = [this] {
      writer_.Put("a", ReportOn("a", "RailFlaky"));
      lossy_.gone = 1;
    };
  };
  writer_.OnLead();
  writer_.Put("a", ReportOn("a", "RailDown"));
  ASSERT_TRUE(Soon([&] { return SeverityOf("a") == "Warning"; }));
  writer_.Forget("a");
  seconds_ = 60;
  ASSERT_TRUE(Soon([&] { return Writes().size() == 5; }));
  EXPECT_EQ(Writes()[2], absl::StrCat(kPath, "a/status"));
  EXPECT_EQ(Writes()[3], absl::StrCat(kPath, "a"));
  EXPECT_TRUE(Soon([&] { return SeverityOf("a") == "Warning"; }));
}

TEST_F(ReportWriterTest, WhoDoesNotLeadWritesNothing) {
  writer_.OnLead();
  WaitForAll();
  leads_ = false;
  writer_.Put("a", ReportOn("a", "RailDown"));
  absl::SleepFor(absl::Milliseconds(300));
  EXPECT_THAT(Writes(), IsEmpty());
}

}  // namespace
}  // namespace railhead::op
