// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/api/stream.h"

#include <algorithm>
#include <future>
#include <utility>

namespace railhead::comm {

Stream::~Stream() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Stream::Add(const void* owner, Run call, std::shared_ptr<const void> group) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    calls_.push_back({owner, std::move(call), std::move(group)});
    ++added_;
  }
  changed_.notify_all();
}

void Stream::ChangeHolds(int by) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    holds_ += by;
  }
  changed_.notify_all();
}

int Stream::Drop(const void* owner, rhResult_t result) {
  int dropped = 0;
  const std::lock_guard<std::mutex> lock(mutex_);
  for (Call& call : calls_) {
    if (call.owner != owner) continue;
    call = {nullptr, [result](const absl::Status&) { return result; }, nullptr};
    ++dropped;
  }
  return dropped;
}

uint64_t Stream::Now() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return added_;
}

bool Stream::IsDone(uint64_t moment) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return done_ >= moment;
}

void Stream::Wait(uint64_t moment) {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return done_ >= moment; });
}

rhResult_t Stream::Result(uint64_t since, uint64_t moment) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [number, failure] : failures_) {
    if (number > since) return number <= moment ? failure : rhSuccess;
  }
  return rhSuccess;
}

uint64_t Stream::told() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return told_;
}

void Stream::Told(uint64_t moment) {
  const std::lock_guard<std::mutex> lock(mutex_);
  told_ = std::max(told_, moment);
}

std::vector<Stream::Failing> Stream::BeginTogether(const std::shared_ptr<const void>& group) {
  std::vector<Failing> failing;
  for (Call& call : calls_) {
    if (call.group != group) continue;
    const Run run = std::move(call.run);
    const auto result = std::make_shared<std::promise<rhResult_t>>();
    absl::StatusOr<std::jthread> started =
        TryStartThread<std::jthread>([run, result] { result->set_value(run(absl::OkStatus())); });
    std::shared_ptr<std::jthread> thread;
    if (started.ok()) {
      thread = std::make_shared<std::jthread>(*std::move(started));
    } else {
      failing.push_back({run, started.status(), result});
    }
    // Drop does not remove this call; rhCommAbort waits for it, as for any running call.
    const std::shared_future<rhResult_t> ended = result->get_future();
    call = {nullptr, [thread, ended](const absl::Status&) { return ended.get(); }, nullptr};
  }
  return failing;
}

void Stream::RunAll() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return holds_ == 0 && (ending_ || !calls_.empty()); });
    if (calls_.empty()) return;
    const Call first = std::move(calls_.front());
    calls_.pop_front();
    std::vector<Failing> failing;
    if (first.group != nullptr) failing = BeginTogether(first.group);
    lock.unlock();
    for (const Failing& call : failing) call.result->set_value(call.run(call.cannot));
    const rhResult_t result = first.run(absl::OkStatus());
    lock.lock();
    ++done_;
    if (result != rhSuccess) failures_.emplace_back(done_, result);
    changed_.notify_all();
  }
}

}  // namespace railhead::comm
