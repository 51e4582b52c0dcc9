// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/setup/connect.h"

#include <poll.h>

#include <algorithm>

#include "runtime/base/now.h"
#include "runtime/net/socket.h"

namespace railhead::comm {
namespace {

// Interval of the attempts: they begin and end by time, which no descriptor signals.
constexpr absl::Duration kPause = absl::Milliseconds(20);

// Returns whether another attempt may succeed. Unknown is the code of failed system calls, for
// example if all ports are in use.
bool MayPass(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) || absl::IsUnknown(status);
}

// Continues one link's attempt. Returns true once it has connected or failed for good.
bool Work(Connecting& connecting) {
  const absl::StatusOr<bool> connected = connecting.link->Reconnect(MonotonicNow());
  if (!connected.ok()) {
    connecting.result = connected.status();
    return !MayPass(connecting.result);
  }
  // Until it connects, keeps the error of the last attempt.
  if (*connected) connecting.result = absl::OkStatus();
  return *connected;
}

}  // namespace

absl::Status ConnectAll(std::vector<Connecting>& links,
                        absl::Span<const std::shared_ptr<transport::Acceptor>> acceptors,
                        absl::Time deadline, const Halt& halt) {
  std::vector<Connecting*> waiting;
  for (Connecting& connecting : links) {
    if (connecting.link == nullptr) continue;
    connecting.result = absl::DeadlineExceededError("the peer did not connect in time");
    waiting.push_back(&connecting);
  }
  while (true) {
    if (absl::Status halted = CheckHalt(halt); !halted.ok()) return halted;
    const bool late = MonotonicNow() >= deadline;
    std::erase_if(waiting, [](Connecting* connecting) {
      if (Work(*connecting)) return true;
      // Tries again, for data that arrived before Arm. This also returns the error of Arm.
      connecting->link->Arm(transport::Wake::kAll).IgnoreError();
      return Work(*connecting);
    });
    if (waiting.empty() || late) return absl::OkStatus();

    // Does not spin, since many ranks may share a core while they start.
    std::vector<pollfd> entries;
    for (const auto& acceptor : acceptors) entries.push_back({acceptor->event_fd(), POLLIN, 0});
    for (const Connecting* connecting : waiting) {
      entries.push_back({connecting->link->event_fd(), POLLIN, 0});
    }
    ::poll(entries.data(), entries.size(),
           net::PollTimeout(std::min(deadline, MonotonicNow() + kPause)));
    for (const auto& acceptor : acceptors) acceptor->Answer(MonotonicNow());
    for (Connecting* connecting : waiting) connecting->link->Answer(MonotonicNow());
  }
}

}  // namespace railhead::comm
