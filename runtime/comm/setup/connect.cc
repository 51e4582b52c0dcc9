// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/setup/connect.h"

#include <poll.h>

#include <algorithm>

#include "runtime/base/now.h"
#include "runtime/net/socket.h"

namespace railhead::comm {
namespace {

// Attempts begin and end with time, which no descriptor shows.
constexpr absl::Duration kPause = absl::Milliseconds(20);

// Whether another attempt may end otherwise. Unknown is a system call's, such as that all ports are
// in use just now.
bool MayPass(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) || absl::IsUnknown(status);
}

// Works at one link. Returns whether that is over.
bool Work(Connecting& connecting) {
  const absl::StatusOr<bool> connected = connecting.link->Reconnect(MonotonicNow());
  if (!connected.ok()) {
    connecting.result = connected.status();
    return !MayPass(connecting.result);
  }
  // Until then, why the last attempt failed is the best that is known.
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
    connecting.result = absl::DeadlineExceededError("the peer did not come in time");
    waiting.push_back(&connecting);
  }
  while (true) {
    if (absl::Status halted = CheckHalt(halt); !halted.ok()) return halted;
    const bool late = MonotonicNow() >= deadline;
    std::erase_if(waiting, [](Connecting* connecting) {
      if (Work(*connecting)) return true;
      // Once more, for what came before the link would wake us. What is wrong, that says too.
      connecting->link->Arm(transport::Wake::kAll).IgnoreError();
      return Work(*connecting);
    });
    if (waiting.empty() || late) return absl::OkStatus();

    // Many ranks may share a core while they start, so nobody spins.
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
