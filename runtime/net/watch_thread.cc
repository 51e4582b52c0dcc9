// SPDX-License-Identifier: Apache-2.0
#include "runtime/net/watch_thread.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>

#include "runtime/base/now.h"
#include "runtime/base/one_per_process.h"
#include "runtime/base/thread.h"
#include "runtime/net/socket.h"

namespace railhead::net {

absl::StatusOr<std::shared_ptr<WatchThread>> WatchThread::Get(Work work) {
  static OnePerProcess<WatchThread> threads;
  const char* const name = work == Work::kWatch ? "watch" : "progress";
  return threads.Get(name, []() -> absl::StatusOr<std::shared_ptr<WatchThread>> {
    net::Fd epoll(::epoll_create1(EPOLL_CLOEXEC));
    if (!epoll.valid()) return net::ErrnoError("epoll_create1", errno);
    epoll.KeepFromChildren();
    absl::StatusOr<net::Event> wake = net::Event::Open();
    if (!wake.ok()) return wake.status();
    epoll_event event{};
    event.events = EPOLLIN;
    if (::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, wake->fd(), &event) != 0) {
      return net::ErrnoError("epoll_ctl", errno);
    }
    std::shared_ptr<WatchThread> made(new WatchThread(std::move(epoll), *std::move(wake)));
    absl::StatusOr<std::thread> started = TryStartThread([raw = made.get()] { raw->Run(); });
    if (!started.ok()) return started.status();
    made->thread_ = *std::move(started);
    return made;
  });
}

WatchThread::~WatchThread() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  wake_.Signal();
  if (thread_.joinable()) thread_.join();
}

void WatchThread::Wake(Client& client, absl::Time at) {
  const std::lock_guard<std::mutex> lock(mutex_);
  absl::Time& next = clients_.try_emplace(&client, absl::InfiniteFuture()).first->second;
  if (next <= at) return;
  next = at;
  wake_.Signal();
}

void WatchThread::AwaitEnd(Client& client) {
  std::unique_lock<std::mutex> lock(mutex_);
  ended_.WaitUntil(lock, absl::InfiniteFuture(), [&] { return !clients_.contains(&client); });
}

void WatchThread::Run() {
  std::set<Client*> stirred;
  while (true) {
    for (Client* const client : Due(stirred)) {
      const std::optional<absl::Time> again = client->Turn();
      const std::lock_guard<std::mutex> lock(mutex_);
      if (again.has_value()) {
        // It may have been woken during its turn.
        absl::Time& next = clients_[client];
        next = std::min(next, *again);
      } else {
        clients_.erase(client);
        ended_.NotifyAll();
      }
    }
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (stop_) return;
    }
    stirred = Sleep();
  }
}

std::set<WatchThread::Client*> WatchThread::Due(const std::set<Client*>& stirred) {
  const absl::Time now = MonotonicNow();
  std::set<Client*> due;
  const std::lock_guard<std::mutex> lock(mutex_);
  // A client whose descriptor had an event may have been removed since.
  for (auto& [client, next] : clients_) {
    if (next > now && !stirred.contains(client)) continue;
    next = absl::InfiniteFuture();
    due.insert(client);
  }
  return due;
}

std::set<WatchThread::Client*> WatchThread::Sleep() {
  absl::Time until = absl::InfiniteFuture();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [client, next] : clients_) until = std::min(until, next);
  }
  std::array<epoll_event, 64> events;
  const int count =
      ::epoll_wait(epoll_.get(), events.data(), events.size(), net::PollTimeout(until));
  std::set<Client*> stirred;
  for (int i = 0; i < count; ++i) {
    void* const client = events[static_cast<size_t>(i)].data.ptr;
    if (client == nullptr) {
      wake_.Clear();
    } else {
      stirred.insert(static_cast<Client*>(client));
    }
  }
  return stirred;
}

}  // namespace railhead::net
