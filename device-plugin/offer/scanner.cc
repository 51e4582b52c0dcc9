// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/offer/scanner.h"

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "device-plugin/kubelet/registration.h"
#include "device-plugin/offer/scan.h"
#include "fabric/sysfs_reader.h"

namespace railhead::device_plugin {
namespace {

constexpr std::chrono::seconds kStopDeadline(5);

}  // namespace

Scanner::Scanner(ScanWish wish, std::chrono::milliseconds pause, Read read,
                 std::function<void()> wake)
    : shared_(std::make_shared<Shared>()) {
  shared_->wish = std::move(wish);
  thread_ = std::thread([shared = shared_, pause, read = std::move(read), wake = std::move(wake)] {
    Run(shared, pause, read, wake);
  });
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

void Scanner::Run(const std::shared_ptr<Shared>& shared, std::chrono::milliseconds pause,
                  const Read& read, const std::function<void()>& wake) {
  fabric::KnownVpd known;
  const auto reading = [&shared](const std::string& hca) {
    const std::lock_guard<std::mutex> lock(shared->mutex);
    shared->busy = Busy{std::chrono::steady_clock::now(), hca};
  };
  std::unique_lock<std::mutex> lock(shared->mutex);
  while (!shared->stop) {
    const ScanWish wish = shared->wish;
    const TimePoint begin = std::chrono::steady_clock::now();
    shared->busy = Busy{begin, ""};
    lock.unlock();
    absl::StatusOr<Scan> scan = read(wish, known, reading);
    lock.lock();
    shared->busy.reset();
    if (shared->stop) break;
    shared->result = Result{std::move(scan), std::chrono::steady_clock::now() - begin};
    lock.unlock();
    wake();
    lock.lock();
    shared->changed.wait_for(lock, pause, [&shared] { return shared->stop; });
  }
  shared->stopped = true;
  shared->changed.notify_all();
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
