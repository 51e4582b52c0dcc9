// SPDX-License-Identifier: Apache-2.0
#include "kube/lease/leader_elector.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "kube/testing/fake_api.h"
#include "kube/testing/soon.h"

namespace railhead::kube {
namespace {

using testing::Soon;

const ObjectRef kLease = {"coordination.k8s.io/v1", "leases", "railhead", "operator"};

// Renews often, and stays leader for this long without a renewal.
ElectionOptions Quick(const std::string& identity, absl::Duration renew_deadline) {
  ElectionOptions options;
  options.identity = identity;
  options.lease = 2 * renew_deadline;
  options.renew_deadline = renew_deadline;
  options.retry = absl::Milliseconds(50);
  return options;
}

class Replica {
 public:
  Replica(const std::string& identity, Api* api, absl::Duration renew_deadline = absl::Minutes(1))
      : elector_(Quick(identity, renew_deadline), kLease, api,
                 {[this] { ++started; }, [this] { ++stopped; },
                  [this](const absl::Status& status) { ++(status.ok() ? recovered : troubles); }},
                 Json{{"part-of", "railhead"}}),
        thread_([this](const std::stop_token& stop) { elector_.Run(stop); }) {}
  bool Leads() const { return elector_.Leads(); }
  void Stop() {
    thread_.request_stop();
    thread_.join();
  }

  std::atomic<int> started{0};
  std::atomic<int> stopped{0};
  std::atomic<int> troubles{0};
  std::atomic<int> recovered{0};

 private:
  LeaderElector elector_;
  std::jthread thread_;
};

TEST(LeaderElectorTest, OneLeadsAndTheOtherFollowsWhenItStops) {
  testing::FakeApi api;
  Replica a("a", &api);
  ASSERT_TRUE(Soon([&a] { return a.Leads() && a.started == 1; }));
  EXPECT_EQ(StringAt(api.At(kLease), {"spec", "holderIdentity"}), "a");
  EXPECT_EQ(StringAt(api.At(kLease), {"metadata", "labels", "part-of"}), "railhead");
  Replica b("b", &api);
  const std::string before = StringAt(api.At(kLease), {"metadata", "resourceVersion"});
  ASSERT_TRUE(Soon([&] {  // a few renewals long
    return std::stoi(StringAt(api.At(kLease), {"metadata", "resourceVersion"})) >
           std::stoi(before) + 5;
  }));
  EXPECT_FALSE(b.Leads());
  a.Stop();
  EXPECT_FALSE(a.Leads());
  EXPECT_EQ(a.stopped, 1);
  ASSERT_TRUE(Soon([&b] { return b.Leads(); }));
  b.Stop();
  EXPECT_EQ(StringAt(api.At(kLease), {"spec", "holderIdentity"}), "");
}

TEST(LeaderElectorTest, AnOutageEndsTheLeadAndIsTold) {
  testing::FakeApi api;
  Replica a("a", &api, absl::Seconds(1));
  ASSERT_TRUE(Soon([&a] { return a.started > 0; }));
  api.SetOutage(absl::UnavailableError("down"));
  ASSERT_TRUE(Soon([&a] { return a.troubles > 0; }));
  // Not the first one that has ended, on a machine too busy to renew it.
  ASSERT_TRUE(Soon([&a] { return a.stopped == a.started; }));
  EXPECT_FALSE(a.Leads());
  EXPECT_EQ(a.recovered, 0);
  const int started = a.started;
  api.SetOutage(absl::OkStatus());
  ASSERT_TRUE(Soon([&a, started] { return a.started > started && a.Leads(); }));
  EXPECT_EQ(a.recovered, 1);
}

}  // namespace
}  // namespace railhead::kube
