// SPDX-License-Identifier: Apache-2.0
#include "kube/cache/reflector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <random>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kube/cache/cache.h"
#include "kube/monotonic.h"
#include "kube/testing/fake_api.h"
#include "kube/testing/soon.h"

namespace railhead::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const ObjectRef kPods = {"v1", "pods", "team", ""};
constexpr BackoffOptions kShort = {absl::Milliseconds(1), absl::Milliseconds(4)};

Json Pod(const std::string& name, int version, int value = 0) {
  return {{"metadata",
           {{"namespace", "team"}, {"name", name}, {"resourceVersion", std::to_string(version)}}},
          {"value", value}};
}
Json Page(std::vector<Json> items, int version, const std::string& go_on = "") {
  return {{"items", items},
          {"metadata", {{"resourceVersion", std::to_string(version)}, {"continue", go_on}}}};
}
std::string WatchLine(const std::string& type, const Json& object) {
  return DumpJson({{"type", type}, {"object", object}}) + "\n";
}

// Answers lists and watches with what a test has put there; the clock is the test's.
class ScriptedApi final : public Api {
 public:
  struct WatchScript {
    std::string bytes;
    absl::Status end;
    absl::Duration length = absl::ZeroDuration();
  };

  absl::StatusOr<Json> Call(const ApiRequest& request) override {
    calls.push_back("list" + request.path.substr(request.path.find('?')));
    if (lists.empty()) return absl::UnavailableError("no more lists");
    absl::StatusOr<Json> answer = lists.front();
    if (lists.size() > 1 || !repeat) lists.pop_front();
    return answer;
  }
  absl::Status Stream(const StreamRequest& request,
                      const std::function<absl::Status(absl::string_view)>& on_bytes) override {
    const size_t from = request.path.find("resourceVersion=");
    calls.push_back("watch " + request.path.substr(from, request.path.find('&', from) - from));
    timeouts.push_back(request.timeout);
    WatchScript script = watches.front();
    if (watches.size() > 1 || !repeat) watches.pop_front();
    now += script.length;
    if (absl::Status taken = on_bytes(script.bytes); !taken.ok()) return taken;
    return script.end;
  }
  std::vector<std::string> TakeCalls() { return std::exchange(calls, {}); }

  absl::Time now = absl::UnixEpoch();
  std::deque<absl::StatusOr<Json>> lists;
  std::deque<WatchScript> watches;
  bool repeat = false;  // the last of each, forever
  std::vector<std::string> calls;
  std::vector<absl::Duration> timeouts;
};

class ReflectorTest : public ::testing::Test {
 protected:
  using Values = Cache<int>;

  std::vector<std::string> Keys() {
    std::vector<std::string> keys;
    cache_.ForEach([&keys](const std::string& key, const Values::Value&) { keys.push_back(key); });
    return keys;
  }
  absl::Duration Step() { return reflector_.Step({}); }

  ScriptedApi api_;
  Values cache_{[](const Json& pod) { return pod["value"].get<int>(); }};
  std::vector<absl::Status> ends_;
  Reflector reflector_{{.collection = kPods, .page_size = 2},
                       &api_,
                       &cache_,
                       [] { return 0.5; },
                       [this] { return api_.now; },
                       [this](const absl::Status& end) { ends_.push_back(end); }};
};

TEST_F(ReflectorTest, ListsInPagesAndWatchesFromThereOn) {
  api_.lists = {Page({Pod("a", 3), Pod("b", 4)}, 10, "t&1"), Page({Pod("c", 5)}, 10)};
  api_.watches = {{WatchLine("ADDED", Pod("d", 11)) + WatchLine("DELETED", Pod("a", 12)) +
                       WatchLine("BOOKMARK", {{"metadata", {{"resourceVersion", "40"}}}}),
                   absl::OkStatus(), absl::Minutes(7)},
                  {"", absl::OkStatus(), absl::Minutes(7)}};
  EXPECT_FALSE(reflector_.Synced());
  EXPECT_EQ(Step(), absl::ZeroDuration());
  EXPECT_TRUE(reflector_.Synced());
  EXPECT_THAT(Keys(), ElementsAre("team/a", "team/b", "team/c"));
  EXPECT_EQ(Step(), absl::Seconds(0.75));
  EXPECT_THAT(Keys(), ElementsAre("team/b", "team/c", "team/d"));
  EXPECT_EQ(Step(), absl::Seconds(0.75));
  EXPECT_THAT(api_.TakeCalls(),
              ElementsAre("list?limit=2", "list?limit=2&continue=t%261", "watch resourceVersion=10",
                          "watch resourceVersion=40"));
  EXPECT_THAT(ends_, ElementsAre(absl::OkStatus(), absl::OkStatus()));
  EXPECT_EQ(api_.timeouts[0], absl::Minutes(7.5) + absl::Seconds(30));
}

TEST_F(ReflectorTest, AListWhoseVersionExpiredBeginsAnewAndOnlyItsEndRemoves) {
  api_.lists = {Page({Pod("a", 3)}, 10)};
  api_.watches = {{"", absl::OutOfRangeError("410")}};
  Step();
  Step();
  api_.TakeCalls();
  api_.lists = {Page({Pod("b", 4)}, 20, "t"), absl::OutOfRangeError("410"),
                Page({Pod("b", 4)}, 30, "u"), Page({Pod("c", 4)}, 30)};
  EXPECT_GT(Step(), absl::ZeroDuration());
  EXPECT_THAT(Keys(), ElementsAre("team/a", "team/b"));
  EXPECT_EQ(Step(), absl::ZeroDuration());
  EXPECT_THAT(Keys(), ElementsAre("team/b", "team/c"));
  EXPECT_THAT(api_.TakeCalls(), ElementsAre("list?limit=2", "list?limit=2&continue=t",
                                            "list?limit=2", "list?limit=2&continue=u"));
}

// As three pods of 9 MB with adjacent names in an answer of 16 MiB at most.
class LargePodsApi final : public Api {
 public:
  absl::StatusOr<Json> Call(const ApiRequest& request) override {
    const size_t limit = Number(request.path, "?limit=");
    const size_t from = Number(request.path, "&continue=");
    limits.push_back(limit);
    std::vector<Json> items;
    int large = 0;
    for (size_t i = from; i < std::min(from + limit, names.size()); ++i) {
      if (absl::StartsWith(names[i], "large")) ++large;
      items.push_back(Pod(names[i], 3));
    }
    if (large > 1) return absl::ResourceExhaustedError("the response is too large");
    const size_t next = from + items.size();
    return Page(std::move(items), 10, next < names.size() ? std::to_string(next) : "");
  }
  absl::Status Stream(const StreamRequest& /*request*/,
                      const std::function<absl::Status(absl::string_view)>& /*unused*/) override {
    return absl::UnavailableError("no watch");
  }

  std::vector<std::string> names;
  std::vector<size_t> limits;

 private:
  static size_t Number(const std::string& path, const std::string& key) {
    const size_t at = path.find(key);
    return at == std::string::npos ? 0 : std::stoul(path.substr(at + key.size()));
  }
};

TEST_F(ReflectorTest, LargeObjectsSideBySideAreReadOneByOneAndTheRestIsNot) {
  LargePodsApi api;
  for (int i = 0; i < 100; ++i) api.names.push_back(absl::StrCat(i < 50 ? "a" : "z", i));
  for (int i = 0; i < 3; ++i) api.names.insert(api.names.begin() + 50, absl::StrCat("large", i));
  Reflector reflector(
      {.collection = kPods, .page_size = 20}, &api, &cache_, [] { return 0.5; },
      [this] { return api_.now; }, [this](const absl::Status& end) { ends_.push_back(end); });
  EXPECT_EQ(reflector.Step({}), absl::ZeroDuration());
  EXPECT_TRUE(reflector.Synced());
  EXPECT_EQ(Keys().size(), 103U);
  EXPECT_THAT(ends_, IsEmpty());
  EXPECT_THAT(api.limits, ElementsAre(20, 20, 20, 10, 20, 10, 5, 2, 1, 2, 1, 2, 4, 8, 16, 20, 20));
}

TEST_F(ReflectorTest, AnObjectLargerThanWhatIsStoredOfItIsWatched) {
  Json pod = Pod("b", 11);
  pod["text"] = std::string(1500U << 10U, '\x01');  // "\u0001" as JSON
  const std::string line = WatchLine("ADDED", pod);
  ASSERT_GT(line.size(), 8U << 20U);
  api_.lists = {Page({Pod("a", 3)}, 10)};
  api_.watches = {{line, absl::OkStatus()}};
  Step();
  Step();
  EXPECT_THAT(ends_, ElementsAre(absl::OkStatus()));
  EXPECT_THAT(Keys(), ElementsAre("team/a", "team/b"));
}

TEST_F(ReflectorTest, APageThatFailsIsReadAgainAndNotTheWholeList) {
  Reflector reflector(
      {.collection = kPods, .page_size = 2, .backoff = kShort}, &api_, &cache_, [] { return 0.5; },
      [this] { return api_.now; }, [this](const absl::Status& end) { ends_.push_back(end); });
  const absl::Status away = absl::UnavailableError("429");
  api_.lists = {Page({Pod("a", 3)}, 10, "t"), away, absl::DeadlineExceededError("504"),
                Page({Pod("b", 4)}, 10)};
  EXPECT_EQ(reflector.Step({}), absl::ZeroDuration());
  EXPECT_TRUE(reflector.Synced());
  EXPECT_THAT(Keys(), ElementsAre("team/a", "team/b"));
  EXPECT_THAT(ends_, IsEmpty());
  EXPECT_THAT(api_.TakeCalls(), ElementsAre("list?limit=2", "list?limit=2&continue=t",
                                            "list?limit=2&continue=t", "list?limit=2&continue=t"));
}

TEST_F(ReflectorTest, APageThatAlwaysFailsEndsTheList) {
  Reflector reflector(
      {.collection = kPods, .page_size = 2, .backoff = kShort}, &api_, &cache_, [] { return 0.5; },
      [this] { return api_.now; }, [this](const absl::Status& end) { ends_.push_back(end); });
  const absl::Status away = absl::UnavailableError("503");
  api_.lists = {Page({Pod("a", 3)}, 10, "t"), away};
  api_.repeat = true;
  EXPECT_GT(reflector.Step({}), absl::ZeroDuration());
  EXPECT_FALSE(reflector.Synced());
  EXPECT_THAT(ends_, ElementsAre(away));
  EXPECT_THAT(api_.TakeCalls(), SizeIs(6));
  // One that is stopped pauses no more.
  std::stop_source stop;
  stop.request_stop();
  api_.lists = {Page({Pod("a", 3)}, 10, "t"), away};
  reflector.Step(stop.get_token());
  EXPECT_THAT(api_.TakeCalls(), SizeIs(2));
}

TEST_F(ReflectorTest, AListThatTookTooLongForItsVersionHasLongerPagesTheNextTime) {
  Reflector reflector(
      {.collection = kPods, .page_size = 20, .backoff = kShort}, &api_, &cache_, [] { return 0.5; },
      [this] { return api_.now; }, [this](const absl::Status& end) { ends_.push_back(end); });
  const absl::Status slow = absl::DeadlineExceededError("no complete answer within 5s");
  api_.lists = {slow, slow, Page({Pod("a", 3)}, 10, "t"), absl::OutOfRangeError("410"),
                Page({Pod("a", 3)}, 20)};
  for (int i = 0; i < 4; ++i) reflector.Step({});
  EXPECT_TRUE(reflector.Synced());
  EXPECT_THAT(api_.TakeCalls(), ElementsAre("list?limit=20", "list?limit=10", "list?limit=8",
                                            "list?limit=8&continue=t", "list?limit=16"));
}

TEST_F(ReflectorTest, APageThatWasTooMuchMakesPagesShorter) {
  Reflector reflector(
      {.collection = kPods, .page_size = 20, .backoff = kShort}, &api_, &cache_, [] { return 0.5; },
      [this] { return api_.now; }, [this](const absl::Status& end) { ends_.push_back(end); });
  const absl::Status large = absl::ResourceExhaustedError("the answer is larger than 4096 bytes");
  const absl::Status slow = absl::DeadlineExceededError("no complete answer within 5s");
  const absl::Status away = absl::UnavailableError("refused");
  api_.lists = {large,
                away,
                Page({Pod("a", 3)}, 10, "t"),
                slow,
                slow,
                Page({Pod("b", 4)}, 10, "u"),
                Page({Pod("c", 4)}, 10)};
  EXPECT_GT(reflector.Step({}), absl::ZeroDuration());
  EXPECT_FALSE(reflector.Synced());
  EXPECT_EQ(reflector.Step({}), absl::ZeroDuration());
  EXPECT_THAT(Keys(), ElementsAre("team/a", "team/b", "team/c"));
  EXPECT_THAT(ends_, ElementsAre(away));
  EXPECT_THAT(api_.TakeCalls(), ElementsAre("list?limit=20", "list?limit=10", "list?limit=20",
                                            "list?limit=20&continue=t", "list?limit=10&continue=t",
                                            "list?limit=8&continue=t", "list?limit=8&continue=u"));
  api_.watches = {{"", absl::OutOfRangeError("410")}};
  reflector.Step({});
  api_.TakeCalls();
  reflector.Step({});
  EXPECT_THAT(api_.TakeCalls(), ElementsAre("list?limit=10"));
}

TEST_F(ReflectorTest, ListsAnewOnlyWhereTheVersionIsNoUse) {
  const std::string added = WatchLine("ADDED", Pod("b", 12));
  const std::vector<std::pair<ScriptedApi::WatchScript, bool>> cases = {
      {{added, absl::OkStatus()}, false},
      {{added, absl::UnavailableError("refused")}, false},
      {{added, absl::UnauthenticatedError("401")}, false},
      {{added, absl::PermissionDeniedError("403")}, false},
      {{added, absl::OutOfRangeError("410")}, true},
      {{added, absl::InvalidArgumentError("400")}, true},
      {{added, absl::NotFoundError("404")}, true},
      {{added, absl::DeadlineExceededError("silent")}, true},
      {{added + "<html>\n", absl::OkStatus()}, true},
      {{added + WatchLine("ADDED", {{"metadata", {{"resourceVersion", "13"}}}}), absl::OkStatus()},
       true},
  };
  for (const auto& [script, lists] : cases) {
    api_.lists = {Page({Pod("a", 3)}, 10)};
    api_.watches = {script, {"", absl::OutOfRangeError("end of this case")}};
    Step();
    Step();
    EXPECT_THAT(Keys(), ElementsAre("team/a", "team/b"));
    api_.TakeCalls();
    api_.lists = {Page({Pod("a", 3)}, 20)};
    Step();
    EXPECT_THAT(api_.TakeCalls(), ElementsAre(lists ? "list?limit=2" : "watch resourceVersion=12"))
        << ends_[ends_.size() - 1];
    if (lists) Step();
  }
}

TEST_F(ReflectorTest, NoListIsTakenForAnEmptyOne) {
  api_.lists = {Page({Pod("a", 3)}, 10)};
  api_.watches = {{"", absl::OutOfRangeError("410")}};
  Step();
  Step();
  Json nameless = Pod("a", 3);
  nameless["metadata"].erase("name");
  for (const Json& answer : {Json(Json::object()), Json{{"items", nullptr}},
                             Json{{"items", Json::array()}}, Page({nameless}, 10), Json("x")}) {
    api_.lists = {answer};
    EXPECT_GT(Step(), absl::ZeroDuration());
    EXPECT_EQ(ends_.back().code(), absl::StatusCode::kDataLoss) << answer;
    EXPECT_THAT(Keys(), ElementsAre("team/a")) << answer;
  }
}

TEST_F(ReflectorTest, AKindThatMustBeThereIsNotTakenForEmpty) {
  api_.lists = {absl::NotFoundError("404"), Page({Pod("a", 3)}, 10)};
  EXPECT_EQ(Step(), absl::Seconds(0.75));
  EXPECT_FALSE(reflector_.Synced());
  EXPECT_THAT(ends_, ElementsAre(absl::NotFoundError("404")));
  EXPECT_EQ(Step(), absl::ZeroDuration());
  api_.watches = {{"", absl::NotFoundError("404")}};
  Step();
  const absl::Time heard = reflector_.HeardAt();
  api_.now += absl::Minutes(1);
  api_.lists = {absl::NotFoundError("404")};
  Step();
  EXPECT_THAT(Keys(), ElementsAre("team/a"));
  EXPECT_EQ(reflector_.HeardAt(), heard);
}

TEST_F(ReflectorTest, AKindThatMayBeUnknownHasNoObjectsThen) {
  Reflector reflector(
      {.collection = kPods, .page_size = 2, .may_be_unknown = true}, &api_, &cache_,
      [] { return 0.5; }, [this] { return api_.now; },
      [this](const absl::Status& end) { ends_.push_back(end); });
  api_.lists = {absl::NotFoundError("404")};
  EXPECT_EQ(reflector.Step({}), absl::Seconds(0.75));
  EXPECT_TRUE(reflector.Synced());
  EXPECT_THAT(ends_, ElementsAre(absl::NotFoundError("404")));
  // It comes, and goes again.
  api_.lists = {Page({Pod("a", 3)}, 10)};
  api_.watches = {{"", absl::NotFoundError("404")}};
  EXPECT_EQ(reflector.Step({}), absl::ZeroDuration());
  EXPECT_THAT(Keys(), ElementsAre("team/a"));
  reflector.Step({});
  EXPECT_THAT(Keys(), ElementsAre("team/a"));  // that a watch is not found says nothing yet
  api_.lists = {absl::NotFoundError("404")};
  reflector.Step({});
  EXPECT_THAT(Keys(), IsEmpty());
}

TEST_F(ReflectorTest, ACollectionThatMayBeForbiddenHasNoObjectsThen) {
  Reflector reflector(
      {.collection = kPods, .page_size = 2, .may_be_forbidden = true}, &api_, &cache_,
      [] { return 0.5; }, [this] { return api_.now; },
      [this](const absl::Status& end) { ends_.push_back(end); });
  api_.lists = {absl::PermissionDeniedError("403")};
  EXPECT_EQ(reflector.Step({}), absl::Seconds(0.75));
  EXPECT_TRUE(reflector.Synced());
  EXPECT_THAT(ends_, ElementsAre(absl::PermissionDeniedError("403")));
  api_.lists = {Page({Pod("a", 3)}, 10)};
  EXPECT_EQ(reflector.Step({}), absl::ZeroDuration());
  EXPECT_THAT(Keys(), ElementsAre("team/a"));
}

TEST_F(ReflectorTest, AWatchThatIsForbiddenFromNowOnIsFollowedByAListIfThatMayBe) {
  Reflector reflector(
      {.collection = kPods, .page_size = 2, .may_be_forbidden = true}, &api_, &cache_,
      [] { return 0.5; }, [this] { return api_.now; },
      [this](const absl::Status& end) { ends_.push_back(end); });
  api_.lists = {Page({Pod("a", 3)}, 10), absl::PermissionDeniedError("403")};
  api_.watches = {{"", absl::PermissionDeniedError("403"), absl::ZeroDuration()}};
  reflector.Step({});
  EXPECT_THAT(Keys(), ElementsAre("team/a"));
  reflector.Step({});
  reflector.Step({});
  EXPECT_THAT(Keys(), IsEmpty());
}

TEST_F(ReflectorTest, TellsWhenItLastHeardOfTheCollection) {
  EXPECT_EQ(reflector_.HeardAt(), absl::InfinitePast());
  api_.lists = {absl::UnavailableError("refused"), Page({Pod("a", 3)}, 10)};
  Step();
  EXPECT_EQ(reflector_.HeardAt(), absl::InfinitePast());
  EXPECT_FALSE(reflector_.Synced());
  Step();
  EXPECT_EQ(reflector_.HeardAt(), api_.now);
  const std::string bookmark = WatchLine("BOOKMARK", {{"metadata", {{"resourceVersion", "40"}}}});
  api_.watches = {{bookmark, absl::OkStatus(), absl::Minutes(1)},
                  {WatchLine("ADDED", Pod("b", 41)), absl::OkStatus(), absl::Minutes(1)},
                  {"", absl::UnavailableError("refused"), absl::Minutes(1)}};
  for (int i = 0; i < 2; ++i) {
    Step();
    EXPECT_EQ(reflector_.HeardAt(), api_.now);
  }
  Step();
  EXPECT_EQ(reflector_.HeardAt(), api_.now - absl::Minutes(1));
}

TEST_F(ReflectorTest, AVersionThatExpiredInAnOutageCostsNoFurtherLongPause) {
  api_.lists = {Page({Pod("a", 3)}, 10), Page({Pod("a", 3)}, 20)};
  const absl::Status away = absl::UnavailableError("refused");
  const absl::Status gone = absl::OutOfRangeError("410");
  api_.watches = {{WatchLine("ADDED", Pod("b", 12)), away, absl::Minutes(1)}};
  for (int i = 0; i < 6; ++i) api_.watches.push_back({"", away});
  api_.watches.push_back({"", gone});
  api_.watches.push_back({"", gone});
  Step();
  for (int i = 0; i < 6; ++i) Step();
  EXPECT_GE(Step(), absl::Seconds(15)) << "the outage goes on";
  EXPECT_LE(Step(), absl::Seconds(1)) << "it is over, and a list is due";
  EXPECT_EQ(Step(), absl::ZeroDuration());
  EXPECT_GE(Step(), absl::Seconds(15)) << "the list was of no use";
}

// A server that answers every list and ends every watch at once must not be asked faster and
// faster.
TEST_F(ReflectorTest, AServerThatHelpsNobodyIsNotAskedMoreOften) {
  for (const absl::Status& end :
       {absl::OkStatus(), absl::OutOfRangeError("410"), absl::UnavailableError("refused")}) {
    api_.repeat = true;
    api_.lists = {Page({Pod("a", 3)}, 10)};
    api_.watches = {{"", end}};
    const absl::Time begin = api_.now;
    while (api_.now < begin + absl::Minutes(10)) api_.now += Step();
    // At most 5 until the pauses are as long as they get, and then one in 22 seconds.
    EXPECT_LE(api_.TakeCalls().size(), 2 * (5 + 600 / 22)) << end;
  }
}

// A real thread, a server on which things happen, and everything that may go wrong.
TEST(ReflectorRunTest, TheCacheEndsUpEqualWhateverHappened) {
  for (unsigned seed = 0; seed < 4; ++seed) {
    std::mt19937 random(seed);
    testing::FakeApi api;
    // What a listener knows, from changes alone.
    std::mutex mutex;
    std::map<std::string, int> told;
    int surprises = 0;
    using Values = Cache<int>;
    Values cache(
        [](const Json& pod) { return pod["value"].get<int>(); },
        [&](const std::string& key, const Values::Value& before, const Values::Value& after) {
          const std::lock_guard<std::mutex> lock(mutex);
          const auto at = told.find(key);
          const bool known = at != told.end();
          if (known != (before != nullptr) || (known && at->second != *before)) {
            ++surprises;
          }
          if (after == nullptr) {
            told.erase(key);
          } else {
            told[key] = *after;
          }
        });
    ReflectorOptions options;
    options.collection = kPods;
    options.backoff = {absl::Milliseconds(1), absl::Milliseconds(4)};
    std::atomic<int> watches_ended = 0;
    Reflector reflector(options, &api, &cache, SystemRandom(), MonotonicNow,
                        [&watches_ended](const absl::Status&) { ++watches_ended; });
    const auto pod = [&random] {
      return ObjectRef{"v1", "pods", "team", absl::StrCat("p", random() % 40)};
    };
    for (int i = 0; i < 60; ++i) {
      const ObjectRef ref = pod();
      api.Put(ref, Pod(ref.name, 0, i));
    }
    std::jthread thread([&reflector](const std::stop_token& stop) { reflector.Run(stop); });
    for (int i = 0; i < 4000; ++i) {
      const ObjectRef ref = pod();
      switch (random() % 40) {
        case 0:
          api.EndWatches();
          break;
        case 1:
          api.Compact();
          break;
        case 2:
          api.SetOutage(absl::UnavailableError("down"));
          break;
        case 3:
          api.Bookmark();
          break;
        case 4:
        case 5:
          api.SetOutage(absl::OkStatus());
          break;
        case 6:
        case 7:
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
          break;
        default:
          if (random() % 3 == 0) {
            api.Remove(ref);
          } else {
            api.Put(ref, Pod(ref.name, 0, i));
          }
      }
    }
    // Also where a busy machine has not let the reflector run meanwhile.
    EXPECT_TRUE(testing::Soon([&] {
      api.EndWatches();
      return watches_ended > 1;
    })) << seed;
    api.SetOutage(absl::OkStatus());
    api.Put({"v1", "pods", "team", "last"}, Pod("last", 0, 1));
    std::map<std::string, int> wanted;
    for (const Json& object : api.In(kPods.Path())) wanted[KeyOf(object)] = object["value"];
    const auto held = [&cache] {
      std::map<std::string, int> all;
      cache.ForEach(
          [&all](const std::string& key, const Values::Value& value) { all[key] = *value; });
      return all;
    };
    const absl::Time deadline = MonotonicNow() + absl::Seconds(60);
    while (held() != wanted && MonotonicNow() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_EQ(held(), wanted) << seed;
    thread.request_stop();
    thread.join();
    EXPECT_EQ(told, wanted) << seed;
    EXPECT_EQ(surprises, 0) << seed;
  }
}

}  // namespace
}  // namespace railhead::kube
