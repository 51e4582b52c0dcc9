// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/stream.h"

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

void Stream::Add(const void* owner, std::function<rhResult_t()> call) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    calls_.push_back({owner, std::move(call)});
    ++added_;
  }
  changed_.notify_all();
}

int Stream::Drop(const void* owner, rhResult_t result) {
  int dropped = 0;
  const std::lock_guard<std::mutex> lock(mutex_);
  for (Call& call : calls_) {
    if (call.owner != owner) continue;
    call = {nullptr, [result] { return result; }};
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

rhResult_t Stream::Result(uint64_t moment) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return failed_call_ <= moment ? failure_ : rhSuccess;
}

void Stream::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ending_ || !calls_.empty(); });
    if (calls_.empty()) return;
    const std::function<rhResult_t()> call = std::move(calls_.front().run);
    calls_.pop_front();
    lock.unlock();
    const rhResult_t result = call();
    lock.lock();
    ++done_;
    if (result != rhSuccess && failure_ == rhSuccess) {
      failure_ = result;
      failed_call_ = done_;
    }
    changed_.notify_all();
  }
}

}  // namespace railhead::comm
