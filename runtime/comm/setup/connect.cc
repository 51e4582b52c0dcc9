// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/setup/connect.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>

#include "absl/cleanup/cleanup.h"
#include "runtime/base/now.h"
#include "runtime/net/fd.h"
#include "runtime/net/socket.h"

namespace railhead::comm {
namespace {

// Interval of the attempts: they begin and end by time, which no descriptor signals.
constexpr absl::Duration kPause = absl::Milliseconds(20);

// Continues one link's attempt. Returns true once it has connected or failed for good.
bool Work(Connecting& connecting) {
  const absl::StatusOr<bool> connected = connecting.link->Reconnect(MonotonicNow());
  if (!connected.ok()) {
    connecting.result = connected.status();
    return !IsLate(connecting.result);
  }
  // Until it connects, keeps the error of the last attempt.
  if (*connected) connecting.result = absl::OkStatus();
  return *connected;
}

bool AllHaveOne(const std::vector<Connecting>& links, size_t rails) {
  for (size_t peer = 0; peer < links.size() / rails; ++peer) {
    if (!AnyConnected(links, rails, peer)) return false;
  }
  return true;
}

}  // namespace

// Unknown is the code of failed system calls, for example if all ports are in use; PermissionDenied
// that of a firewall of this machine.
bool IsLate(const absl::Status& result) {
  return absl::IsUnavailable(result) || absl::IsDeadlineExceeded(result) ||
         absl::IsUnknown(result) || absl::IsPermissionDenied(result);
}

bool AnyConnected(const std::vector<Connecting>& links, size_t rails, size_t peer) {
  const auto first = links.begin() + static_cast<std::ptrdiff_t>(peer * rails);
  return std::any_of(first, first + static_cast<std::ptrdiff_t>(rails),
                     [](const Connecting& connecting) { return connecting.result.ok(); });
}

absl::Status ConnectAll(std::vector<Connecting>& links, transport::WakeEvent& wake,
                        const ConnectOptions& options, const Halt& halt) {
  if (links.empty()) return absl::OkStatus();
  const net::Fd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return net::ErrnoError("epoll_create1", errno);
  const auto wake_all_by = [&links, &wake](int fd) {
    absl::Status set = wake.WakeBy(fd, nullptr);
    for (const Connecting& connecting : links) {
      if (connecting.link != nullptr) set.Update(connecting.link->WakeBy(fd, nullptr).status());
    }
    return set;
  };
  const absl::Cleanup leave = [&] { wake_all_by(-1).IgnoreError(); };
  if (absl::Status set = wake_all_by(epoll.get()); !set.ok()) return set;

  std::vector<Connecting*> waiting;
  for (Connecting& connecting : links) {
    if (connecting.link == nullptr) continue;
    connecting.result = absl::DeadlineExceededError("the peer did not connect in time");
    waiting.push_back(&connecting);
  }
  absl::Time deadline = options.deadline;
  bool all_have_one = false;
  while (true) {
    if (absl::Status halted = CheckHalt(halt); !halted.ok()) return halted;
    const absl::Time now = MonotonicNow();
    if (!all_have_one && AllHaveOne(links, options.rails)) {
      all_have_one = true;
      deadline = std::min(deadline, now + options.grace);
    }
    const bool late = now >= deadline;
    std::erase_if(waiting, [](Connecting* connecting) {
      bool done = Work(*connecting);
      if (!done) {
        // Tries again, for data that arrived before Arm. This also returns the error of Arm.
        connecting->link->Arm(transport::Wake::kAll).IgnoreError();
        done = Work(*connecting);
      }
      // Its first frames must not end each sleep.
      if (done) connecting->link->WakeBy(-1, nullptr).IgnoreError();
      return done;
    });
    const bool any_awaited =
        std::any_of(waiting.begin(), waiting.end(),
                    [](const Connecting* connecting) { return connecting->awaited; });
    if (!any_awaited || late) return absl::OkStatus();

    // Does not spin, since many ranks may share a core while they start.
    epoll_event any{};
    ::epoll_wait(epoll.get(), &any, 1,
                 net::PollTimeout(std::min(deadline, MonotonicNow() + kPause)));
    wake.Clear();
    for (Connecting* connecting : waiting) connecting->link->Answer(MonotonicNow());
  }
}

}  // namespace railhead::comm
