// SPDX-License-Identifier: Apache-2.0
#include "kube/queue/event_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kube/testing/fake_api.h"
#include "kube/testing/soon.h"

namespace railhead::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Rejects what is written in some namespaces.
class PickyApi final : public Api {
 public:
  absl::StatusOr<Json> Call(const ApiRequest& request) override {
    ++calls;
    for (const auto& [space, status] : rejected) {
      if (absl::StrContains(request.path, absl::StrCat("/", space, "/"))) return status;
    }
    return api.Call(request);
  }
  absl::Status Stream(const StreamRequest& /*request*/,
                      const std::function<absl::Status(absl::string_view)>& /*on_bytes*/) override {
    return absl::UnimplementedError("");
  }

  testing::FakeApi api;
  std::map<std::string, absl::Status> rejected;  // by namespace
  int calls = 0;
};

class EventQueueTest : public ::testing::Test {
 protected:
  void Add(const std::string& space, const std::string& name) {
    Event event;
    event.api = "v1";
    event.kind = "Pod";
    event.space = space;
    event.name = name;
    event.reason = "Tested";
    event.message = "now";
    queue_.Add(event, absl::StrCat(space, "/", name));
  }
  // Sends what is due.
  absl::Duration Steps() {
    for (;;) {
      const absl::Duration pause = queue_.Step();
      if (pause > absl::ZeroDuration()) return pause;
    }
  }
  std::vector<std::string> Sent(const std::string& space) {
    std::vector<std::string> names;
    for (const Json& event : api_.api.In(absl::StrCat("/api/v1/namespaces/", space, "/events"))) {
      names.push_back(event["involvedObject"]["name"]);
    }
    return names;
  }

  PickyApi api_;
  absl::Time now_ = absl::UnixEpoch();
  absl::Time wall_ = absl::FromUnixSeconds(1800000000);
  std::vector<std::string> log_;
  EventQueue queue_{{.max_events = 4},
                    EventRecorder(
                        &api_, "test", "me", [this] { return wall_; },
                        {.burst = 10, .refill = absl::Seconds(1)}, [this] { return now_; }),
                    [] { return 1.0; },
                    [this] { return wall_; },
                    [this](const std::string& line) { log_.push_back(line); },
                    [this] { return now_; }};
};

TEST_F(EventQueueTest, SendsWithTheTimeAtWhichItHappened) {
  Add("a", "first");
  wall_ += absl::Minutes(1);
  Add("a", "second");
  EXPECT_EQ(Steps(), absl::InfiniteDuration());
  EXPECT_THAT(Sent("a"), ElementsAre("first", "second"));
  EXPECT_EQ(api_.api.In("/api/v1/namespaces/a/events")[0]["lastTimestamp"], "2027-01-15T08:00:00Z");
  EXPECT_THAT(queue_.TakeLost(), IsEmpty());
  EXPECT_THAT(log_, IsEmpty());
}

TEST_F(EventQueueTest, ANamespaceWhoseEventsFailKeepsNoOtherWaiting) {
  api_.rejected["a"] = absl::UnavailableError("failed calling webhook");
  Add("a", "0");
  Add("a", "1");
  Add("b", "2");
  EXPECT_EQ(Steps(), absl::Milliseconds(500));
  EXPECT_THAT(Sent("b"), ElementsAre("2"));
  EXPECT_EQ(api_.calls, 2);
  now_ += absl::Milliseconds(500);
  EXPECT_EQ(Steps(), absl::Seconds(1));
  EXPECT_EQ(api_.calls, 3);
  api_.rejected.clear();
  now_ += absl::Seconds(1);
  EXPECT_EQ(Steps(), absl::InfiniteDuration());
  EXPECT_THAT(Sent("a"), ElementsAre("0", "1"));
  EXPECT_THAT(queue_.TakeLost(), IsEmpty());
  EXPECT_THAT(log_, ElementsAre("no Event: failed calling webhook"));
}

TEST_F(EventQueueTest, WhatIsTooMuchOrTooOldIsDroppedAndCountedOnce) {
  api_.rejected["a"] = absl::UnavailableError("failed calling webhook");
  for (int i = 0; i < 7; ++i) {
    Add("a", absl::StrCat(i));
    Steps();
  }
  EXPECT_THAT(queue_.TakeLost(), ElementsAre("a/0", "a/1", "a/2"));
  EXPECT_THAT(queue_.TakeLost(), IsEmpty());
  EXPECT_THAT(log_, ElementsAre("no Event: failed calling webhook", HasSubstr("more than 4")));
  now_ += absl::Minutes(5);
  api_.rejected.clear();
  Add("a", "7");  // in place of 3
  now_ += absl::Milliseconds(1);
  EXPECT_EQ(Steps(), absl::InfiniteDuration());
  EXPECT_THAT(Sent("a"), ElementsAre("7"));
  EXPECT_THAT(queue_.TakeLost(), ElementsAre("a/3", "a/4", "a/5", "a/6"));
  EXPECT_EQ(log_.back(), "dropped 7 Events");
  EXPECT_THAT(log_, SizeIs(3));
}

TEST_F(EventQueueTest, WhatIsRejectedForGoodIsLostAndNotTriedAgain) {
  api_.rejected["a"] = absl::PermissionDeniedError("403");
  Add("a", "0");
  Add("a", "1");
  EXPECT_EQ(Steps(), absl::InfiniteDuration());
  EXPECT_EQ(api_.calls, 2);
  EXPECT_THAT(queue_.TakeLost(), ElementsAre("a/0", "a/1"));
  EXPECT_THAT(log_, ElementsAre("no Event: 403"));
}

TEST_F(EventQueueTest, EventsWaitUntilTheLimitsAllowThem) {
  for (int i = 0; i < 12; ++i) {
    Add("a", absl::StrCat("e", i));
    Steps();
  }
  EXPECT_THAT(Sent("a"), SizeIs(10));
  EXPECT_GT(Steps(), absl::ZeroDuration());
  now_ += absl::Seconds(2);
  EXPECT_EQ(Steps(), absl::InfiniteDuration());
  EXPECT_THAT(Sent("a"), SizeIs(12));
  EXPECT_THAT(queue_.TakeLost(), IsEmpty());
}

TEST_F(EventQueueTest, AThreadSendsWhatIsAddedAndStops) {
  std::jthread sender([this](const std::stop_token& stop) { queue_.Run(stop); });
  Add("a", "0");
  EXPECT_TRUE(testing::Soon([&] { return Sent("a").size() == 1; }));
  Add("a", "1");
  EXPECT_TRUE(testing::Soon([&] { return Sent("a").size() == 2; }));
}

}  // namespace
}  // namespace railhead::kube
