// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/api/stream.h"

#include <future>
#include <utility>

namespace railhead::comm {

Stream::Stream() {
  failures_.Watch(told_);
  thread_ = StartThread([this] { RunAll(); });
}

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

Stream::Calls::Calls(std::shared_ptr<Stream> stream) : stream_(std::move(stream)) {
  const std::lock_guard<std::mutex> lock(stream_->mutex_);
  since_ = stream_->told_;
  last_ = stream_->added_;
  stream_->failures_.Watch(last_);  // for Reported
  stream_->failures_.Watch(since_);
}

Stream::Calls::~Calls() {
  // The fork may have copied the mutex locked.
  if (::getpid() != process_) return;
  const std::lock_guard<std::mutex> lock(stream_->mutex_);
  stream_->failures_.Forget(since_);
  stream_->failures_.Forget(last_);
}

bool Stream::Calls::AreDone() const {
  const std::lock_guard<std::mutex> lock(stream_->mutex_);
  return stream_->done_ >= last_;
}

void Stream::Calls::Wait() const {
  std::unique_lock<std::mutex> lock(stream_->mutex_);
  stream_->changed_.wait(lock, [this] { return stream_->done_ >= last_; });
}

rhResult_t Stream::Calls::Result() const {
  const std::lock_guard<std::mutex> lock(stream_->mutex_);
  return stream_->failures_.Among(since_, last_);
}

void Stream::Calls::Reported() {
  const std::lock_guard<std::mutex> lock(stream_->mutex_);
  if (last_ <= stream_->told_) return;
  stream_->failures_.Watch(last_);
  stream_->failures_.Forget(std::exchange(stream_->told_, last_));
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
    if (result != rhSuccess) failures_.Add(done_, result);
    changed_.notify_all();
  }
}

}  // namespace railhead::comm
