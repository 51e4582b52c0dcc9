// SPDX-License-Identifier: Apache-2.0
//
// Scans the node periodically on a separate thread: reading files of a NIC with hung firmware, or
// of a hung GPU driver, blocks, and kubelet must not wait for that.
#ifndef RAILHEAD_DEVICE_PLUGIN_OFFER_SCANNER_H_
#define RAILHEAD_DEVICE_PLUGIN_OFFER_SCANNER_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "device-plugin/devices/time_point.h"
#include "device-plugin/offer/scan.h"
#include "fabric/sysfs_reader.h"

namespace railhead::device_plugin {

// Thread-safe. Used by Agent.
class Scanner {
 public:
  using Read =
      std::function<absl::StatusOr<Scan>(const ScanWish& wish, fabric::KnownVpd& known,
                                         const std::function<void(const std::string&)>& reading)>;

  struct Result {
    absl::StatusOr<Scan> scan;
    Duration took;
    std::set<std::string> hanging;  // what the scan did without; see ScanWish
  };
  struct Busy {
    TimePoint since;
    std::string what;  // being read: an HCA, or kGpuDriver; "" for other files
  };

  // Starts at once, and again `pause` after each end. `wake` is called after each new result.
  Scanner(ScanWish wish, std::chrono::milliseconds pause, Read read, std::function<void()> wake);
  // Waits up to five seconds for a scan in progress; a hung one is detached.
  ~Scanner();
  Scanner(const Scanner&) = delete;
  Scanner& operator=(const Scanner&) = delete;

  // Applies from the next scan.
  void SetGpuVendors(std::vector<std::string> vendors);

  // Returns the latest result, once.
  std::optional<Result> Take();

  // Returns what is being read and since when; nullopt between scans.
  std::optional<Busy> busy() const;

  // If one HCA, or the GPU driver, has been read for more than `limit`: leaves that reading to its
  // thread, and scans without it on another thread until it ends. So there is at most one thread
  // for each thing that hangs.
  void LeaveHanging(TimePoint now, Duration limit);

 private:
  // Outlives the scanner if a scan hangs.
  struct Shared {
    std::chrono::milliseconds pause;
    Read read;
    std::function<void()> wake;

    mutable std::mutex mutex;
    std::condition_variable changed;
    ScanWish wish;
    fabric::KnownVpd known;  // as of the last complete scan
    std::optional<Result> result;
    std::optional<Busy> busy;
    uint64_t reader = 0;  // number of the thread that scans; all others are left to what hangs
    bool stop = false;
    bool stopped = false;
  };

  static void Run(const std::shared_ptr<Shared>& shared, uint64_t number);

  const std::shared_ptr<Shared> shared_;
  std::thread thread_;
};

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_OFFER_SCANNER_H_
