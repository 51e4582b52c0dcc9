// SPDX-License-Identifier: Apache-2.0
#include "kube/queue/work_queue.h"

#include <algorithm>
#include <utility>

namespace railhead::kube {
namespace {

// The standard library cannot wait forever; this is looked at again.
constexpr absl::Duration kLongestWait = absl::Hours(1);

}  // namespace

WorkQueue::WorkQueue(BackoffOptions backoff, Random random, std::function<absl::Time()> clock,
                     GroupOf group_of)
    : clock_(std::move(clock)), state_(backoff, std::move(random), std::move(group_of)) {}

void WorkQueue::AddAfter(const std::string& item, absl::Duration delay) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    state_.Add(item, clock_() + delay);
  }
  changed_.notify_one();
}

std::optional<std::string> WorkQueue::Take(absl::Duration patience) {
  const absl::Time deadline = clock_() + patience;
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    if (shut_down_) return std::nullopt;
    const absl::Time now = clock_();
    if (std::optional<std::string> item = state_.Take(now)) {
      // Another thread must wait for the next item now.
      if (state_.waiting() > 0) changed_.notify_one();
      return item;
    }
    if (now >= deadline) return std::nullopt;
    const absl::Duration wait = std::min(deadline, state_.NextDue()) - now;
    changed_.wait_for(lock, absl::ToChronoNanoseconds(std::min(wait, kLongestWait)));
  }
}

void WorkQueue::Finish(const std::string& item) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    state_.Finish(item);
  }
  changed_.notify_one();
}

void WorkQueue::Rest(const std::string& item, absl::Duration pause) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    state_.Rest(item, clock_() + pause);
  }
  changed_.notify_one();
}

absl::Duration WorkQueue::Retry(const std::string& item) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const absl::Duration pause = state_.Retry(item, clock_());
  changed_.notify_one();
  return pause;
}

void WorkQueue::Clear() {
  const std::lock_guard<std::mutex> lock(mutex_);
  state_.Clear();
}

void WorkQueue::ShutDown() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    shut_down_ = true;
  }
  changed_.notify_all();
}

bool WorkQueue::is_shut_down() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return shut_down_;
}

}  // namespace railhead::kube
