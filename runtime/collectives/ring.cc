// SPDX-License-Identifier: Apache-2.0
#include "runtime/collectives/ring.h"

#include <array>
#include <optional>

namespace railhead::collectives {
namespace {

// The messages of one direction: those before `done` are done, those before `posted` posted.
class Row {
 public:
  size_t done() const { return done_; }
  size_t posted() const { return posted_; }
  bool full() const { return posted_ - done_ == kRingAhead; }

  // Nothing for an empty message, which is done when its turn comes.
  void Push(std::optional<Messenger::Ticket> ticket) { tickets_[posted_++ % kRingAhead] = ticket; }

  template <class IsDone>
  void Update(IsDone is_done) {
    for (; done_ < posted_; ++done_) {
      const std::optional<Messenger::Ticket>& ticket = tickets_[done_ % kRingAhead];
      if (ticket.has_value() && !is_done(*ticket)) return;
    }
  }

 private:
  size_t done_ = 0;
  size_t posted_ = 0;
  std::array<std::optional<Messenger::Ticket>, kRingAhead> tickets_;
};

// Whether the message that another one waits for is done.
bool Ready(size_t needed, const Row& row) {
  return needed == RingSchedule::kNothing || needed < row.done();
}

}  // namespace

absl::Status RunRing(Messenger& messenger, int previous, int next, const RingSchedule& schedule) {
  Row sends;
  Row receives;
  while (true) {
    receives.Update(
        [&](Messenger::Ticket ticket) { return messenger.ReceiveDone(previous, ticket); });
    sends.Update([&](Messenger::Ticket ticket) { return messenger.SendDone(next, ticket); });
    bool posted = false;
    while (receives.posted() < schedule.receives() && !receives.full()) {
      const RingSchedule::Incoming incoming = schedule.Receive(receives.posted());
      if (!Ready(incoming.after, sends)) break;
      receives.Push(incoming.buffer.size == 0
                        ? std::nullopt
                        : std::optional(messenger.PostReceive(previous, incoming.buffer)));
      posted = true;
    }
    while (sends.posted() < schedule.sends() && !sends.full()) {
      const RingSchedule::Outgoing outgoing = schedule.Send(sends.posted());
      if (!Ready(outgoing.needs, receives)) break;
      sends.Push(outgoing.data.empty() ? std::nullopt
                                       : std::optional(messenger.PostSend(next, outgoing.data)));
      posted = true;
    }
    // What was posted may be empty and so done; only then is there nothing to do but wait.
    if (posted) continue;
    if (receives.done() == schedule.receives() && sends.done() == schedule.sends()) {
      return absl::OkStatus();
    }
    if (absl::Status progress = messenger.Progress(); !progress.ok()) return progress;
  }
}

}  // namespace railhead::collectives
