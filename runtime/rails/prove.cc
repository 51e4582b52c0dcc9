// SPDX-License-Identifier: Apache-2.0
#include "runtime/rails/prove.h"

#include "absl/time/clock.h"

namespace railhead::rails {
namespace {

// Between two looks at links on which nothing moves. The trial happens once, at start.
constexpr absl::Duration kPause = absl::Microseconds(100);

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

}  // namespace

void ProveLinks(std::vector<LinkTrial>& trials, absl::Time deadline) {
  std::vector<State> states(trials.size());
  while (true) {
    bool all_over = true;
    bool moved = false;
    for (size_t i = 0; i < trials.size(); ++i) {
      if (states[i].over) continue;
      moved = Advance(trials[i], states[i]) || moved;
      all_over = all_over && states[i].over;
    }
    if (all_over) return;
    if (moved) continue;
    if (absl::Now() >= deadline) break;
    absl::SleepFor(kPause);
  }
  for (size_t i = 0; i < trials.size(); ++i) {
    if (states[i].over) continue;
    trials[i].result = absl::DeadlineExceededError(
        states[i].received ? "the peer was heard, but nothing reaches it"
                           : "nothing has come from the peer");
  }
}

}  // namespace railhead::rails
