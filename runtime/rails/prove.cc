// SPDX-License-Identifier: Apache-2.0
#include "runtime/rails/prove.h"

#include <poll.h>

#include <algorithm>

#include "absl/time/clock.h"
#include "runtime/net/socket.h"

namespace railhead::rails {
namespace {

// Between two looks at links on which nothing moves: of which one cannot wake us, and else.
constexpr absl::Duration kShortPause = absl::Milliseconds(1);
constexpr absl::Duration kLongPause = absl::Milliseconds(20);

struct State {
  bool sent = false;
  bool received = false;
  bool over = false;
};

// Moves one trial on. Returns whether anything moved.
bool Advance(LinkTrial& trial, State& state) {
  const auto fail = [&](absl::Status status) {
    trial.result = std::move(status);
    state.over = true;
    return true;
  };
  bool moved = false;
  if (!state.sent) {
    const auto* bytes = reinterpret_cast<const std::byte*>(trial.say.data());
    const absl::StatusOr<bool> taken =
        trial.link->TrySend({0, 0}, absl::MakeConstSpan(bytes, trial.say.size()));
    if (!taken.ok()) return fail(taken.status());
    state.sent = *taken;
    moved = *taken;
  }
  bool wrong = false;
  const absl::StatusOr<bool> polled = trial.link->Poll(
      [&](const transport::FrameHeader& /*header*/, absl::Span<const std::byte> payload) {
        // What comes behind the greeting belongs to the collectives and stays.
        if (state.received) return false;
        state.received = true;
        wrong = absl::string_view(reinterpret_cast<const char*>(payload.data()), payload.size()) !=
                trial.expect;
        return true;
      });
  if (!polled.ok()) return fail(polled.status());
  if (wrong) return fail(absl::InternalError("somebody else than the peer answered on this rail"));
  state.over = state.sent && state.received && trial.link->Flushed();
  return moved || *polled || state.over;
}

// Gets the links ready to wake us.
void ArmAll(std::vector<LinkTrial>& trials, std::vector<State>& states) {
  for (size_t i = 0; i < trials.size(); ++i) {
    if (states[i].over) continue;
    trials[i].result = trials[i].link->Arm(transport::Wake::kAll);
    states[i].over = !trials[i].result.ok();
  }
}

// Waits until a link stirs. Many ranks may share a core while they start, so nobody spins.
void Wait(const std::vector<LinkTrial>& trials, const std::vector<State>& states,
          absl::Time deadline) {
  std::vector<pollfd> entries;
  absl::Duration pause = kLongPause;
  for (size_t i = 0; i < trials.size(); ++i) {
    if (states[i].over) continue;
    const int fd = trials[i].link->event_fd();
    if (fd >= 0) {
      entries.push_back({fd, POLLIN, 0});
    } else {
      pause = kShortPause;
    }
  }
  ::poll(entries.data(), entries.size(), net::PollTimeout(std::min(deadline, absl::Now() + pause)));
  for (size_t i = 0; i < trials.size(); ++i) {
    if (!states[i].over) trials[i].link->Answer(absl::Now());
  }
}

}  // namespace

void ProveLinks(std::vector<LinkTrial>& trials, absl::Time deadline) {
  std::vector<State> states(trials.size());
  bool armed = false;
  while (true) {
    bool all_over = true;
    bool moved = false;
    for (size_t i = 0; i < trials.size(); ++i) {
      if (states[i].over) continue;
      moved = Advance(trials[i], states[i]) || moved;
      all_over = all_over && states[i].over;
    }
    if (all_over) return;
    if (!moved && absl::Now() >= deadline) break;
    // What came before the links were armed is looked for once more.
    if (armed && !moved) Wait(trials, states, deadline);
    if (!armed && !moved) ArmAll(trials, states);
    armed = !armed && !moved;
  }
  for (size_t i = 0; i < trials.size(); ++i) {
    if (states[i].over) continue;
    trials[i].result = absl::DeadlineExceededError(
        states[i].received ? "the peer was heard, but nothing reaches it"
                           : "nothing has come from the peer");
  }
}

}  // namespace railhead::rails
