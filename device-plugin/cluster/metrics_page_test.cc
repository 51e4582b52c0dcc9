// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/cluster/metrics_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fabric/inventory.h"
#include "fabric/testing/sysfs_tree.h"

namespace railhead::device_plugin {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::Not;

const TimePoint kStart = TimePoint() + seconds(1000);
constexpr seconds kPatience(60);  // no NIC hangs here, and busy machines are slow
constexpr char kBytes[] = "/sys/class/net/eth1/statistics/tx_bytes";

class MetricsPageTest : public ::testing::Test {
 protected:
  MetricsPageTest() {
    fabric::testing::FakeHca rxe;
    rxe.name = "rxe0";
    rxe.pci = "0000:00:03.0";
    rxe.netdev = "eth1";
    tree_.AddRxe(rxe);
    tree_.Write(kBytes, "1");
    fabric::Hca hca;
    hca.name = "rxe0";
    hca.ports = {{1, "ACTIVE", "Ethernet", 100}};
    fabric::NodeInventory inventory;
    inventory.hcas = {hca};
    board_.Publish(inventory, {{"rxe0", hca}});
  }

  // The page that much after the start.
  std::string TextAfter(Duration time) {
    now_ = kStart + time;
    return page_.Text();
  }
  MetricsPage::Clock Clock() {
    return [this] { return now_; };
  }

  fabric::testing::SysfsTree tree_;
  DeviceBoard board_;
  TimePoint now_ = kStart;
  int asked_ = 0;
  absl::StatusOr<DeviceHolders> answer_ = DeviceHolders{{"rxe0", {{"team-a", "train-0"}}}};
  MetricsPage page_{tree_.root(),
                    "node-1",
                    board_,
                    [this] {
                      ++asked_;
                      return answer_;
                    },
                    Clock(),
                    kPatience};
};

TEST_F(MetricsPageTest, ReadsCountersOnceASecond) {
  EXPECT_THAT(TextAfter(seconds(0)), HasSubstr("pod=\"train-0\"} 1\n"));
  tree_.Write(kBytes, "2");
  EXPECT_THAT(TextAfter(milliseconds(999)), Not(HasSubstr("pod=\"train-0\"} 2\n")));
  EXPECT_THAT(TextAfter(seconds(1)), HasSubstr("pod=\"train-0\"} 2\n"));
}

TEST_F(MetricsPageTest, AsksKubeletEveryTenSecondsAndForgetsWhatItNoLongerSays) {
  for (int t = 0; t < 10; ++t) TextAfter(seconds(t));
  EXPECT_EQ(asked_, 1);
  answer_ = absl::UnavailableError("down");
  const std::string without = TextAfter(seconds(10));
  EXPECT_EQ(asked_, 2);
  EXPECT_THAT(without, Not(HasSubstr("train-0")));
  EXPECT_THAT(without, HasSubstr("railhead_port_transmit_bytes_total"));
  TextAfter(seconds(19));
  EXPECT_EQ(asked_, 2) << "nor is a kubelet that is down asked more often";
  answer_ = DeviceHolders{{"rxe0", {{"team-a", "train-1"}}}};
  EXPECT_THAT(TextAfter(seconds(20)), HasSubstr("train-1"));
}

TEST_F(MetricsPageTest, ShowsWhatTheLoopReports) {
  page_.ScanTook(milliseconds(250));
  page_.Registered(true, 2);
  const std::string text = TextAfter(seconds(0));
  EXPECT_THAT(text, HasSubstr("railhead_agent_registered{node=\"node-1\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("railhead_agent_registrations_total{node=\"node-1\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("railhead_agent_scan_seconds{node=\"node-1\"} 0.25\n"));
}

TEST_F(MetricsPageTest, ATreeThatIsGoneTakesAwayItsCountersOnly) {
  const MetricsPage page(
      tree_.root() + "/none", "node-1", board_, [this] { return answer_; }, Clock(), kPatience);
  const std::string text = page.Text();
  EXPECT_THAT(text, Not(HasSubstr("transmit_bytes")));
  EXPECT_THAT(text, HasSubstr("railhead_device_healthy"));
}

TEST_F(MetricsPageTest, NobodyWaitsForAKubeletThatSomebodyElseWaitsFor) {
  std::promise<void> asked;
  std::promise<void> answer;
  const MetricsPage page(
      tree_.root(), "node-1", board_,
      [&] {
        asked.set_value();
        answer.get_future().wait();
        return answer_;
      },
      Clock(), kPatience);
  std::thread first([&page] { EXPECT_THAT(page.Text(), HasSubstr("node-1")); });
  asked.get_future().wait();
  EXPECT_THAT(page.Text(), HasSubstr("railhead_port_transmit_bytes_total"));
  answer.set_value();
  first.join();
  now_ += seconds(1);
  EXPECT_THAT(page.Text(), HasSubstr("train-0"));
}

}  // namespace
}  // namespace railhead::device_plugin
