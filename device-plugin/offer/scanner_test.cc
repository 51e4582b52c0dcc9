// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/offer/scanner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "device-plugin/offer/scan.h"
#include "fabric/sysfs_reader.h"
#include "fabric/testing/sysfs_tree.h"

namespace railhead::device_plugin {
namespace {

// Waits until something is true, as long as it takes.
class Gate {
 public:
  void Open() {
    const std::lock_guard<std::mutex> lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

TEST(Scanner, TellsWhatItReadsWhileThatHangs) {
  Gate hangs;
  Gate goes_on;
  const Scanner::Read read = [&](const ScanWish& /*wish*/, fabric::KnownVpd& /*known*/,
                                 const std::function<void(const std::string&)>& reading) {
    reading("mlx5_3");
    hangs.Open();
    goes_on.Wait();
    return absl::StatusOr<Scan>(Scan());
  };
  Gate woken;
  Scanner scanner({}, std::chrono::hours(1), read, [&woken] { woken.Open(); });
  hangs.Wait();
  ASSERT_TRUE(scanner.busy().has_value());
  EXPECT_EQ(scanner.busy()->what, "mlx5_3");
  EXPECT_FALSE(scanner.Take().has_value());
  goes_on.Open();
  woken.Wait();
  EXPECT_FALSE(scanner.busy().has_value());
  EXPECT_TRUE(scanner.Take().has_value());
  EXPECT_FALSE(scanner.Take().has_value()) << "each once";
}

TEST(Scanner, GoesOnWithoutWhatHangsUntilThatEnds) {
  const auto hang = std::make_shared<Gate>();
  Gate hangs;
  std::atomic<int> scans = 0;
  const Scanner::Read read = [&](const ScanWish& wish, fabric::KnownVpd& known,
                                 const std::function<void(const std::string&)>& reading) {
    ++scans;
    EXPECT_EQ(known.contains("of a scan that did not end"), false);
    if (!wish.hanging.contains("mlx5_3")) {
      known["of a scan that did not end"];
      reading("mlx5_3");
      hangs.Open();
      hang->Wait();
      known.clear();
    }
    reading("mlx5_4");
    return absl::StatusOr<Scan>(Scan());
  };
  const auto hanging_in = [](Scanner& scanner) {
    std::optional<Scanner::Result> result;
    while (!result.has_value()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      result = scanner.Take();
    }
    return result->hanging;
  };
  Scanner scanner({}, std::chrono::milliseconds(1), read, [] {});
  hangs.Wait();
  const TimePoint now = std::chrono::steady_clock::now();
  scanner.LeaveHanging(now, std::chrono::hours(1));
  EXPECT_FALSE(scanner.Take().has_value()) << "not yet";
  EXPECT_EQ(scans, 1);
  scanner.LeaveHanging(now + std::chrono::hours(2), std::chrono::hours(1));
  EXPECT_THAT(hanging_in(scanner), ::testing::ElementsAre("mlx5_3"));
  EXPECT_THAT(hanging_in(scanner), ::testing::ElementsAre("mlx5_3"));
  hang->Open();
  while (!hanging_in(scanner).empty()) {
  }
}

TEST(ReadScan, CountsByNameAndTellsEachHca) {
  const fabric::testing::SysfsTree tree;
  fabric::testing::FakeHca hca;
  hca.name = "mlx5_0";
  hca.pci = "0000:18:00.0";
  tree.AddHca(hca);
  const std::string counters = "/sys/class/infiniband/mlx5_0/ports/1/counters";
  tree.Write(counters + "/link_downed", "3\n");
  tree.Write(counters + "/symbol_error", "7\n");
  tree.Write("/sys/module/ib_core/parameters/netns_mode", "N\n");
  fabric::KnownVpd known;
  std::string read;
  const absl::StatusOr<Scan> scan =
      ReadScan({tree.root(), tree.root(), fabric::DefaultGpuVendors()}, known,
               [&read](const std::string& name) { read += name + ","; });
  ASSERT_TRUE(scan.ok()) << scan.status();
  EXPECT_EQ(scan->link_downs.at("mlx5_0"), 3U);
  EXPECT_EQ(scan->symbol_errors.at("mlx5_0"), 7U);
  EXPECT_EQ(scan->rdma_namespaces, "exclusive");
  EXPECT_EQ(read, "mlx5_0,,mlx5_0,,");
}

// A CNI plugin sets the interface down, and the port counts that: both after the interface was
// read, and before the counters are.
TEST(ReadScan, ALinkThatIsSetDownBetweenTwoFilesIsSetDown) {
  const fabric::testing::SysfsTree tree;
  fabric::testing::FakeHca hca;
  hca.name = "rxe0";
  hca.pci = "0000:18:00.0";
  hca.netdev = "eth1";
  tree.AddRxe(hca);
  const std::string counter = "/sys/class/infiniband/rxe0/ports/1/hw_counters/link_downed";
  tree.Write(counter, "0\n");
  tree.Write("/sys/class/net/eth1/flags", "0x1003\n");
  fabric::KnownVpd known;
  ScanWish wish{tree.root(), tree.root(), fabric::DefaultGpuVendors()};
  int readings = 0;
  const auto scan = [&](const std::function<void()>& before_counters) {
    readings = 0;
    Scan now = ReadScan(wish, known, [&](const std::string& name) {
                 if (name == "rxe0" && ++readings == 2) before_counters();
               }).value();
    wish.last = std::make_shared<const Scan>(now);
    return now;
  };
  EXPECT_FALSE(scan([] {}).inventory.hcas[0].set_down);
  const Scan down = scan([&] {
    tree.Write("/sys/class/net/eth1/flags", "0x1002\n");
    tree.Write(counter, "1\n");
  });
  EXPECT_EQ(down.link_downs.at("rxe0"), 1U);
  EXPECT_TRUE(down.inventory.hcas[0].set_down);
  // It is up again, and goes away.
  tree.Write("/sys/class/net/eth1/flags", "0x1003\n");
  EXPECT_FALSE(scan([] {}).inventory.hcas[0].set_down);
  const Scan away = scan([&] {
    tree.Remove("/sys/class/net/eth1");
    tree.Write(counter, "2\n");
  });
  EXPECT_FALSE(away.inventory.hcas[0].interface_here);
}

// A GPU on which NVIDIA's driver works.
void AddGpu(const fabric::testing::SysfsTree& tree, const std::string& uuid) {
  const std::string gpu = "/sys/devices/pci0000:40/0000:40:01.0/0000:41:00.0";
  tree.Write(gpu + "/class", "0x030200\n");
  tree.Write(gpu + "/vendor", "0x10de\n");
  tree.Link("/sys/bus/pci/devices/0000:41:00.0", "../../../.." + gpu);
  tree.Write("/proc/driver/nvidia/gpus/0000:41:00.0/information", "GPU UUID: \t " + uuid + "\n");
}

TEST(ReadScan, ReadsTheUuidsOfGpusOnceAndNotFromADriverThatHangs) {
  const fabric::testing::SysfsTree tree;
  tree.MakeFolder("/sys/class/infiniband");
  AddGpu(tree, "GPU-1");
  fabric::KnownVpd known;
  ScanWish wish{tree.root(), tree.root(), fabric::DefaultGpuVendors()};
  std::string read;
  const auto scan = [&] {
    read.clear();
    Scan now = ReadScan(wish, known, [&read](const std::string& what) { read += what; }).value();
    wish.last = std::make_shared<const Scan>(now);
    return now.gpu_uuids;
  };
  const std::map<std::string, std::string> first = {{"GPU-1", "0000:41:00.0"}};
  EXPECT_EQ(scan(), first);
  EXPECT_EQ(read, kGpuDriver);
  // A GPU does not change its UUID.
  AddGpu(tree, "GPU-2");
  EXPECT_EQ(scan(), first);
  wish.hanging = {kGpuDriver};
  tree.Remove("/proc/driver/nvidia/gpus");
  EXPECT_EQ(scan(), first);
  EXPECT_EQ(read, "");
}

}  // namespace
}  // namespace railhead::device_plugin
