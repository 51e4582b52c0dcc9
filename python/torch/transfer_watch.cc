// SPDX-License-Identifier: Apache-2.0
#include "transfer_watch.h"

#include <chrono>
#include <thread>
#include <utility>
#include <vector>

namespace railhead_torch {
namespace {

// Callers that wait do not depend on it.
constexpr auto kPollInterval = std::chrono::milliseconds(1);
// Programs that transfer all the time do not wake the thread each time.
constexpr auto kStaysAwake = std::chrono::milliseconds(200);
// The library's time limit for ranks that leave.
constexpr auto kAfterGroup = std::chrono::seconds(10);
// Callbacks may wait for events that can no longer happen.
constexpr auto kLongestStop = std::chrono::seconds(1);

}  // namespace

void TransferWatch::Add(WorkPtr work) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const TransferWork* const key = work.get();
  works_.emplace(key, std::move(work));
  if (!std::exchange(started_, true)) {
    StartThread([this] { Loop(); }).detach();
  }
  if (asleep_) changed_.NotifyAll();
}

TransferWatch::WorkPtr TransferWatch::Take(const TransferWork* work) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = works_.find(work);
  if (found == works_.end()) return {};
  WorkPtr taken = std::move(found->second);
  works_.erase(found);
  return taken;
}

void TransferWatch::Leave(const Executor* executor) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [key, work] : works_) {
    if (work->executor() == executor) work->EndAfter(TransferWork::Clock::now() + kAfterGroup);
  }
}

void TransferWatch::Stop() {
  std::unique_lock<std::mutex> lock(mutex_);
  stopped_ = true;
  changed_.NotifyAll();
  const auto latest = TransferWork::Clock::now() + kLongestStop;
  while (completing_ && changed_.WaitUntil(lock, latest)) continue;
}

void TransferWatch::Loop() {
  std::unique_lock<std::mutex> lock(mutex_);
  auto used = TransferWork::Clock::now();
  while (!stopped_) {
    const auto now = TransferWork::Clock::now();
    std::vector<WorkPtr> done;
    for (auto it = works_.begin(); it != works_.end();) {
      if (!it->second->IsDone()) {
        it->second->EndIfLate(now);
        ++it;
        continue;
      }
      done.push_back(std::move(it->second));
      it = works_.erase(it);
    }
    if (!works_.empty() || !done.empty()) used = now;
    if (now - used > kStaysAwake) {
      asleep_ = true;
      while (works_.empty() && !stopped_) changed_.Wait(lock);
      asleep_ = false;
      continue;
    }
    if (!done.empty()) {
      completing_ = true;
      lock.unlock();
      for (WorkPtr& work : done) TransferWork::Complete(std::move(work));
      lock.lock();
      completing_ = false;
      changed_.NotifyAll();
    }
    lock.unlock();
    std::this_thread::sleep_for(kPollInterval);
    lock.lock();
  }
}

}  // namespace railhead_torch
