// SPDX-License-Identifier: Apache-2.0
//
// Scans the node periodically on a separate thread: reading files of a NIC with hung firmware
// blocks, and kubelet must not wait for that.
#ifndef RAILHEAD_DEVICE_PLUGIN_OFFER_SCANNER_H_
#define RAILHEAD_DEVICE_PLUGIN_OFFER_SCANNER_H_

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "device-plugin/kubelet/registration.h"
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
  };
  struct Busy {
    TimePoint since;
    std::string hca;  // being read; "" for other files
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

 private:
  // Outlives the scanner if a scan hangs.
  struct Shared {
    mutable std::mutex mutex;
    std::condition_variable changed;
    ScanWish wish;
    std::optional<Result> result;
    std::optional<Busy> busy;
    bool stop = false;
    bool stopped = false;
  };

  static void Run(const std::shared_ptr<Shared>& shared, std::chrono::milliseconds pause,
                  const Read& read, const std::function<void()>& wake);

  const std::shared_ptr<Shared> shared_;
  std::thread thread_;
};

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_OFFER_SCANNER_H_
