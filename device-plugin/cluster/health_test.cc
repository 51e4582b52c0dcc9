// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/cluster/health.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <chrono>
#include <string>

#include "kube/testing/http_client.h"

namespace railhead::device_plugin {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

const TimePoint kBoot = TimePoint() + seconds(1000);

TEST(Health, ReadyFollowsTheStream) {
  Health health;
  EXPECT_FALSE(health.Ready().ok()) << "not before the first look";
  health.Report({/*has_devices=*/true, /*kubelet=*/true, /*serving=*/false}, kBoot);
  EXPECT_THAT(std::string(health.Ready().message()), HasSubstr("stream"));
  health.Report({true, true, true}, kBoot);
  EXPECT_TRUE(health.Ready().ok());
  health.Report({true, false, false}, kBoot);
  EXPECT_THAT(std::string(health.Ready().message()), HasSubstr("kubelet.sock"));
}

TEST(Health, ANodeWithoutDevicesIsReady) {
  Health health;
  health.Report({false, true, false}, kBoot);
  EXPECT_TRUE(health.Ready().ok());
}

TEST(Health, LiveUntilTheLoopIsStuck) {
  Health health;
  EXPECT_TRUE(health.Live(kBoot).ok());
  health.Report({true, true, true}, kBoot);
  EXPECT_TRUE(health.Live(kBoot + seconds(60)).ok());
  EXPECT_FALSE(health.Live(kBoot + seconds(61)).ok());
}

TEST(Health, LiveUntilUnheardForTooLong) {
  Health health;
  for (int t = 0; t <= 120; t += 5) {
    health.Report({true, true, false}, kBoot + seconds(t));
    EXPECT_TRUE(health.Live(kBoot + seconds(t)).ok()) << t;
  }
  health.Report({true, true, false}, kBoot + seconds(125));
  EXPECT_FALSE(health.Live(kBoot + seconds(125)).ok());
  health.Report({true, false, false}, kBoot + seconds(130));
  EXPECT_TRUE(health.Live(kBoot + seconds(130)).ok()) << "a kubelet that is down is not our fault";
  health.Report({true, true, false}, kBoot + seconds(135));
  EXPECT_TRUE(health.Live(kBoot + seconds(135)).ok()) << "and the count begins anew";
}

TEST(HealthPages, AnswerProbes) {
  Health health;
  const auto server =
      kube::PageServer::Start("--health-address", "127.0.0.1:0", HealthPages(health));
  ASSERT_TRUE(server.ok()) << server.status();
  httplib::Client client = kube::testing::HttpClient("127.0.0.1", (*server)->port());
  EXPECT_EQ(client.Get("/healthz")->status, 200);
  EXPECT_EQ(client.Get("/readyz")->status, 503);
  health.Report({true, true, true}, std::chrono::steady_clock::now());
  EXPECT_EQ(client.Get("/readyz")->status, 200);
  EXPECT_EQ(client.Get("/other")->status, 404);
}

}  // namespace
}  // namespace railhead::device_plugin
