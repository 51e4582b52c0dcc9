// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/watch.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "runtime/net/socket.h"

namespace railhead::bootstrap {
namespace {

// How long a rank that has reported a failure waits for the job's verdict.
constexpr absl::Duration kVerdictPatience = absl::Seconds(1);

// News are short and the connections idle, so they nearly always fit into the sockets' buffers; a
// neighbour that takes none holds this rank up this long at most.
constexpr absl::Duration kSendPatience = absl::Milliseconds(200);

}  // namespace

absl::StatusOr<std::unique_ptr<Watch>> Watch::Start(Bootstrap bootstrap) {
  net::Fd event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  net::Fd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event.valid() || !wake.valid()) return net::ErrnoError("eventfd", errno);
  auto [node, links] = std::move(bootstrap).Take();
  std::unique_ptr<Watch> watch(
      new Watch(std::move(node), std::move(links), std::move(event), std::move(wake)));
  watch->thread_ = std::thread([raw = watch.get()] { raw->Run(); });
  return watch;
}

Watch::Watch(Node node, Links links, net::Fd event, net::Fd wake)
    : event_(std::move(event)),
      wake_(std::move(wake)),
      node_(std::move(node)),
      links_(std::move(links)) {}

Watch::~Watch() {
  stop_ = true;
  Wake();
  thread_.join();
}

absl::Status Watch::verdict() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return verdict_;
}

absl::Status Watch::Announce(const absl::Status& failure) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (failure_.ok()) failure_ = failure;
  Wake();
  // The thread has a deadline of its own for this, and judges alone when it has passed.
  changed_.wait_for(lock, absl::ToChronoMilliseconds(2 * kVerdictPatience),
                    [this] { return !verdict_.ok(); });
  return verdict_.ok() ? failure : verdict_;
}

void Watch::Goodbye(absl::Time deadline) {
  std::unique_lock<std::mutex> lock(mutex_);
  leaving_ = true;
  Wake();
  changed_.wait_for(lock, absl::ToChronoMilliseconds(deadline - absl::Now()),
                    [this] { return everybody_left_ || !verdict_.ok(); });
}

void Watch::Wake() {
  const uint64_t one = 1;
  // A full counter wakes just as well.
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
}

void Watch::Run() {
  // From the moment that this rank has reported something.
  absl::Time patience = absl::InfiniteFuture();
  while (true) {
    // Read before sending, so that what was asked for before the end is still said.
    const bool stopping = stop_;
    TakeWishes();
    const bool waiting = !node_.reported().ok() && node_.verdict().ok();
    if (!waiting) patience = absl::InfiniteFuture();
    if (waiting && patience == absl::InfiniteFuture()) patience = absl::Now() + kVerdictPatience;
    if (absl::Now() >= patience) node_.StopWaiting(node_.reported());
    // First the others: once this rank knows, its process may end at any moment, and the others
    // would take that for the cause.
    links_.Flush(node_, absl::Now() + kSendPatience);
    Publish();
    if (stopping) return;
    std::vector<pollfd> others = {{wake_.get(), POLLIN, 0}};
    // Mostly without a deadline: this thread waits for news, and its owner wakes it to end it.
    links_.Turn(node_, others, patience);
    if (others[0].revents != 0) {
      uint64_t count = 0;
      [[maybe_unused]] const ssize_t got = ::read(wake_.get(), &count, sizeof count);
    }
  }
}

void Watch::TakeWishes() {
  absl::Status failure;
  bool leaving = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    failure = failure_;
    leaving = leaving_;
  }
  if (!failure.ok()) node_.Report(failure);
  if (leaving) node_.Goodbye();
}

void Watch::Publish() {
  const bool failed = !node_.verdict().ok();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (verdict_.ok() == !failed && everybody_left_ == node_.everybody_left()) return;
    verdict_ = node_.verdict();
    everybody_left_ = node_.everybody_left();
    changed_.notify_all();
  }
  if (!failed || failed_) return;
  failed_.store(true, std::memory_order_release);
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(event_.get(), &one, sizeof one);
}

}  // namespace railhead::bootstrap
