// SPDX-License-Identifier: Apache-2.0
#include "kube/events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/time/time.h"
#include "kube/json.h"
#include "kube/testing/fake_api.h"

namespace railhead::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

class EventsTest : public ::testing::Test {
 protected:
  static Event AboutNode(const std::string& message) {
    Event event;
    event.api = "v1";
    event.kind = "Node";
    event.name = "node-1";
    event.uid = "node-1";
    event.warning = true;
    event.reason = "RailDown";
    event.message = message;
    return event;
  }
  Json Only() { return api_.In("/api/v1/namespaces/default/events").at(0); }

  testing::FakeApi api_;
  absl::Time now_ = absl::FromUnixSeconds(1800000000);
  absl::Time monotonic_ = absl::UnixEpoch();
  EventRecorder recorder_{&api_, "railhead-device-plugin",     "node-1", [this] { return now_; },
                          {},    [this] { return monotonic_; }};
};

TEST_F(EventsTest, MakesAnEventThatDescribeShows) {
  ASSERT_TRUE(recorder_.Record(AboutNode("rail 3 is down")).ok());
  const Json event = Only();
  EXPECT_THAT(StringAt(event, {"metadata", "name"}), StartsWith("node-1."));
  EXPECT_EQ(event["involvedObject"], Json({{"apiVersion", "v1"},
                                           {"kind", "Node"},
                                           {"namespace", ""},
                                           {"name", "node-1"},
                                           {"uid", "node-1"}}));
  EXPECT_EQ(event["type"], "Warning");
  EXPECT_EQ(event["reason"], "RailDown");
  EXPECT_EQ(event["message"], "rail 3 is down");
  EXPECT_EQ(event["source"]["component"], "railhead-device-plugin");
  EXPECT_EQ(event["firstTimestamp"], "2027-01-15T08:00:00Z");
  EXPECT_EQ(event["count"], 1);
}

TEST_F(EventsTest, CountsWhatIsToldAgain) {
  ASSERT_TRUE(recorder_.Record(AboutNode("rail 3 is down")).ok());
  now_ += absl::Minutes(1);
  ASSERT_TRUE(recorder_.Record(AboutNode("rail 3 is down")).ok());
  EXPECT_EQ(Only()["count"], 2);
  EXPECT_EQ(Only()["firstTimestamp"], "2027-01-15T08:00:00Z");
  EXPECT_EQ(Only()["lastTimestamp"], "2027-01-15T08:01:00Z");
  ASSERT_TRUE(recorder_.Record(AboutNode("rail 4 is down")).ok());
  EXPECT_THAT(api_.In("/api/v1/namespaces/default/events"), SizeIs(2));
}

TEST_F(EventsTest, WhereItsPartIsNamedAnEventIsTheSameWhateverItsMessageSays) {
  Event event = AboutNode("rail 3 is down for 10 s");
  event.part = "rail 3";
  ASSERT_TRUE(recorder_.Record(event).ok());
  EventRecorder other(&api_, "railhead-device-plugin", "node-1", [this] { return now_; });
  event.message = "rail 3 is down for 20 s";
  ASSERT_TRUE(other.Record(event).ok());
  ASSERT_TRUE(recorder_.Record(event).ok());  // nor does it need the right to count
  EXPECT_EQ(Only()["count"], 1);
  EXPECT_EQ(Only()["message"], "rail 3 is down for 10 s");
  event.part = "rail 4";
  ASSERT_TRUE(other.Record(event).ok());
  EXPECT_THAT(api_.In("/api/v1/namespaces/default/events"), SizeIs(2));
}

TEST_F(EventsTest, AnEventThatHasExpiredIsMadeAnew) {
  ASSERT_TRUE(recorder_.Record(AboutNode("rail 3 is down")).ok());
  api_.Remove({"v1", "events", "default", StringAt(Only(), {"metadata", "name"})});
  ASSERT_TRUE(recorder_.Record(AboutNode("rail 3 is down")).ok());
  EXPECT_EQ(Only()["count"], 1);
}

TEST_F(EventsTest, AnotherProcessToldItBefore) {
  ASSERT_TRUE(recorder_.Record(AboutNode("rail 3 is down")).ok());
  ASSERT_TRUE(recorder_.Record(AboutNode("rail 3 is down")).ok());
  EventRecorder successor(&api_, "railhead-device-plugin", "node-1", [this] { return now_; });
  now_ += absl::Minutes(50);
  EXPECT_TRUE(successor.Record(AboutNode("rail 3 is down")).ok());
  EXPECT_THAT(api_.In("/api/v1/namespaces/default/events"), SizeIs(1));
  EXPECT_EQ(Only()["lastTimestamp"], "2027-01-15T08:50:00Z");
  EXPECT_EQ(Only()["count"], 2);
  EXPECT_TRUE(successor.Record(AboutNode("rail 3 is down")).ok());
  EXPECT_EQ(Only()["count"], 3);
}

TEST_F(EventsTest, EventsOfAPodAreInItsNamespace) {
  Event event = AboutNode("not the nearest");
  event.kind = "Pod";
  event.space = "team";
  event.name = std::string(253, 'p');
  ASSERT_TRUE(recorder_.Record(event).ok());
  const std::vector<Json> events = api_.In("/api/v1/namespaces/team/events");
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_LE(StringAt(events[0], {"metadata", "name"}).size(), 253U);
}

TEST_F(EventsTest, TooManyAreRefused) {
  for (int i = 0; i < 25; ++i) EXPECT_TRUE(recorder_.Record(AboutNode(std::to_string(i))).ok());
  const absl::Status refused = recorder_.Record(AboutNode("one more"));
  EXPECT_TRUE(absl::IsResourceExhausted(refused));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("one more"));
  now_ += absl::Hours(10);  // that the clock was set gives no more room
  EXPECT_FALSE(recorder_.Record(AboutNode("one more")).ok());
  monotonic_ += absl::Seconds(10);
  EXPECT_TRUE(recorder_.Record(AboutNode("one more")).ok());
  EXPECT_FALSE(recorder_.Record(AboutNode("two more")).ok());
}

TEST_F(EventsTest, AnOutageIsTheCallersToHandle) {
  api_.SetOutage(absl::UnavailableError("no connection"));
  EXPECT_TRUE(absl::IsUnavailable(recorder_.Record(AboutNode("rail 3 is down"))));
  api_.SetOutage(absl::OkStatus());
  EXPECT_TRUE(recorder_.Record(AboutNode("rail 3 is down")).ok());
  EXPECT_EQ(Only()["count"], 1);
}

}  // namespace
}  // namespace railhead::kube
