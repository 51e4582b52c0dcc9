// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/offer/scanner.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "device-plugin/devices/time_point.h"
#include "device-plugin/offer/scan.h"
#include "fabric/sysfs_reader.h"

namespace railhead::device_plugin {
namespace {

constexpr std::chrono::seconds kStopDeadline(5);

}  // namespace

Scanner::Scanner(ScanWish wish, std::chrono::milliseconds pause, Read read,
                 std::function<void()> wake)
    : shared_(std::make_shared<Shared>()) {
  shared_->pause = pause;
  shared_->read = std::move(read);
  shared_->wake = std::move(wake);
  shared_->wish = std::move(wish);
  thread_ = std::thread([shared = shared_] { Run(shared, 0); });
}

Scanner::~Scanner() {
  std::unique_lock<std::mutex> lock(shared_->mutex);
  shared_->stop = true;
  shared_->changed.notify_all();
  const bool stopped =
      shared_->changed.wait_for(lock, kStopDeadline, [this] { return shared_->stopped; });
  lock.unlock();
  if (stopped) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

void Scanner::Run(const std::shared_ptr<Shared>& shared, uint64_t number) {
  std::string what;  // last reported; "" if it no longer counts
  const auto has_ended = [&shared, &what] { shared->wish.hanging.erase(std::exchange(what, "")); };
  const auto reading = [&](const std::string& next) {
    const std::lock_guard<std::mutex> lock(shared->mutex);
    if (shared->reader != number) {
      has_ended();
      return;
    }
    what = next;
    shared->busy = Busy{std::chrono::steady_clock::now(), next};
  };
  std::unique_lock<std::mutex> lock(shared->mutex);
  fabric::KnownVpd known = shared->known;
  while (!shared->stop) {
    const ScanWish wish = shared->wish;
    const TimePoint begin = std::chrono::steady_clock::now();
    what.clear();
    shared->busy = Busy{begin, ""};
    lock.unlock();
    absl::StatusOr<Scan> scan = shared->read(wish, known, reading);
    lock.lock();
    if (shared->reader != number) {
      has_ended();
      return;
    }
    shared->busy.reset();
    if (shared->stop) break;
    shared->known = known;
    if (scan.ok()) shared->wish.last = std::make_shared<const Scan>(*scan);
    shared->result =
        Result{std::move(scan), std::chrono::steady_clock::now() - begin, wish.hanging};
    lock.unlock();
    shared->wake();
    lock.lock();
    shared->changed.wait_for(lock, shared->pause, [&shared] { return shared->stop; });
  }
  shared->stopped = true;
  shared->changed.notify_all();
}

void Scanner::LeaveHanging(TimePoint now, Duration limit) {
  const std::lock_guard<std::mutex> lock(shared_->mutex);
  const std::optional<Busy>& busy = shared_->busy;
  if (!busy.has_value() || now - busy->since <= limit || busy->what.empty()) return;
  if (!shared_->wish.hanging.insert(busy->what).second) return;
  shared_->busy.reset();
  ++shared_->reader;
  thread_.detach();
  thread_ = std::thread([shared = shared_, number = shared_->reader] { Run(shared, number); });
}

void Scanner::SetGpuVendors(std::vector<std::string> vendors) {
  const std::lock_guard<std::mutex> lock(shared_->mutex);
  shared_->wish.gpu_vendors = std::move(vendors);
}

std::optional<Scanner::Result> Scanner::Take() {
  const std::lock_guard<std::mutex> lock(shared_->mutex);
  return std::exchange(shared_->result, std::nullopt);
}

std::optional<Scanner::Busy> Scanner::busy() const {
  const std::lock_guard<std::mutex> lock(shared_->mutex);
  return shared_->busy;
}

}  // namespace railhead::device_plugin
