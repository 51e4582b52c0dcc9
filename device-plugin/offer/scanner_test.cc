// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/offer/scanner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <functional>
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
  EXPECT_EQ(scanner.busy()->hca, "mlx5_3");
  EXPECT_FALSE(scanner.Take().has_value());
  goes_on.Open();
  woken.Wait();
  EXPECT_FALSE(scanner.busy().has_value());
  EXPECT_TRUE(scanner.Take().has_value());
  EXPECT_FALSE(scanner.Take().has_value()) << "each once";
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
  EXPECT_EQ(read, "mlx5_0,mlx5_0,,");
}

}  // namespace
}  // namespace railhead::device_plugin
