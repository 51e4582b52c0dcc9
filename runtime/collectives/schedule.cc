// SPDX-License-Identifier: Apache-2.0
#include "runtime/collectives/schedule.h"

#include <array>

namespace railhead::collectives {
namespace {

// The messages of one direction: those before `done` are done, those before `posted` posted.
class Row {
 public:
  size_t done() const { return done_; }
  size_t posted() const { return posted_; }
  bool full() const { return posted_ - done_ == kAhead; }

  // An empty message has nothing to wait for, and is done when its turn comes.
  void PushEmpty() { places_[posted_++ % kAhead] = {kNobody, 0}; }
  void Push(int peer, Messenger::Ticket ticket) { places_[posted_++ % kAhead] = {peer, ticket}; }

  template <class IsDone>
  void Update(IsDone is_done) {
    for (; done_ < posted_; ++done_) {
      const Place& place = places_[done_ % kAhead];
      if (place.peer != kNobody && !is_done(place.peer, place.ticket)) return;
    }
  }

 private:
  static constexpr int kNobody = -1;
  struct Place {
    int peer;
    Messenger::Ticket ticket;
  };

  size_t done_ = 0;
  size_t posted_ = 0;
  std::array<Place, kAhead> places_;  // those between done and posted are set
};

// Returns true if the message that another one waits for is done.
bool Ready(size_t needed, const Row& row) {
  return needed == Schedule::kNothing || needed < row.done();
}

}  // namespace

absl::Status Run(Messenger& messenger, const Schedule& schedule) {
  Row sends;
  Row receives;
  while (true) {
    receives.Update(
        [&](int peer, Messenger::Ticket ticket) { return messenger.ReceiveDone(peer, ticket); });
    sends.Update(
        [&](int peer, Messenger::Ticket ticket) { return messenger.SendDone(peer, ticket); });
    bool posted = false;
    while (receives.posted() < schedule.receives() && !receives.full()) {
      const Schedule::Incoming incoming = schedule.Receive(receives.posted());
      if (!Ready(incoming.after, sends) || !Ready(incoming.needs, receives)) break;
      if (incoming.buffer.size == 0) {
        receives.PushEmpty();
      } else {
        receives.Push(incoming.peer, messenger.PostReceive(incoming.peer, incoming.buffer));
      }
      posted = true;
    }
    while (sends.posted() < schedule.sends() && !sends.full()) {
      const Schedule::Outgoing outgoing = schedule.Send(sends.posted());
      if (!Ready(outgoing.needs, receives)) break;
      if (outgoing.data.empty()) {
        sends.PushEmpty();
      } else {
        sends.Push(outgoing.peer, messenger.PostSend(outgoing.peer, outgoing.data));
      }
      posted = true;
    }
    // Posted messages may be empty and so done: wait only if nothing was posted.
    if (posted) continue;
    if (receives.done() == schedule.receives() && sends.done() == schedule.sends()) {
      return absl::OkStatus();
    }
    if (absl::Status progress = messenger.Progress(); !progress.ok()) return progress;
  }
}

}  // namespace railhead::collectives
