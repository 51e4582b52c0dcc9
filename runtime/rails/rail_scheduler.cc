// SPDX-License-Identifier: Apache-2.0
#include "runtime/rails/rail_scheduler.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace railhead::rails {
namespace {

// Rate of all rails before any is measured: high enough that only the byte counts matter.
constexpr double kUnmeasuredRate = 1e9;
// Time constant of past measurements, and minimum time of a measurement.
constexpr double kFadeSeconds = 0.03;
constexpr double kLeastSeconds = 0.001;
// A longer time without deliveries was not caused by the rail's speed.
constexpr absl::Duration kLongestQuiet = absl::Milliseconds(50);
// Deliveries show in bursts: acknowledgements queue behind the peer's data, each for up to 64 KiB.
// A rail without deliveries for less than the time between bursts is not slow.
constexpr absl::Duration kLump = absl::Milliseconds(20);
// An idle rail may exceed its rate for a short time: the limiter (a shaper, the queue of a slow
// switch port) lets it use the credit of its idle time, up to this many seconds.
constexpr double kLongestRest = 0.05;
// Observations over this time count as a measurement even if they match the assumed rate.
constexpr double kLongestTrial = 0.1;
// Minimum assumed rate, as a fraction of the fastest; and the time in which the assumed rate of a
// rail that gets nothing doubles, without which one bad measurement would exclude it for good.
constexpr double kSlowest = 1.0 / 128;
constexpr double kSecondChanceSeconds = 0.1;
// Longer than between two looks of one who works.
constexpr absl::Duration kLongestLook = absl::Milliseconds(20);

// Maximum data given to a rail at once, and held unsent by it, in seconds at its rate: bridges the
// time until this process polls it again.
constexpr double kPieceSeconds = 0.001;
constexpr double kHoldSeconds = 0.003;
// Maximum backlog of a rail, sent or not, in seconds besides two round trips of an idle network:
// bridges a delay of this process, and stays below the queues of networks.
constexpr double kQueueSeconds = 0.005;
// Maximum part of the backlog, in seconds, that may have arrived unnoticed: an acknowledgement
// queues behind as much data as the peer's rail holds.
constexpr double kHiddenSeconds = kQueueSeconds;
constexpr size_t kLeastBytes = size_t{16} << 10;
constexpr size_t kMostBytes = size_t{256} << 10;
constexpr size_t kShareStep = size_t{4} << 10;  // pieces are whole pages, and so whole values
// A backlog with which a rail may run dry before it is looked at again.
constexpr size_t kLittle = size_t{8} << 10;
// While the rates are unknown a slow rail must not swallow much: a NIC takes for lost what has not
// arrived after 0.1 s or so.
constexpr size_t kUnmeasuredBytes = size_t{64} << 10;

// Rails that would be done at the same time, give or take this, are as good as each other.
constexpr double kTolerance = 50e-6;
// Maximum deficit in bytes that a rail may catch up by being preferred. A larger one is forgotten,
// so that a rail that was busy for a long time is not flooded afterwards.
constexpr double kMemory = 4 << 20;
// Maximum bytes ahead of its share because a rail's chunks carry acknowledgements.
constexpr double kFavor = 64 << 10;

size_t Bounded(double bytes) {
  const auto whole = static_cast<size_t>(std::min(bytes, static_cast<double>(kMostBytes)));
  return std::max(whole / kShareStep * kShareStep, kLeastBytes);
}

}  // namespace

bool RailScheduler::Rail::measured() const { return seconds >= kLeastSeconds && bytes > 0; }

void RailScheduler::Give(size_t rail, size_t bytes) {
  Rail& taker = rails_[rail];
  taker.given_since += bytes;
  taker.owing = false;
  AssessLeft(taker);
  taker.virtual_time += static_cast<double>(bytes) / taker.rate;
  const double forgotten = taker.virtual_time - kMemory / taker.rate;
  for (Rail& other : rails_) other.virtual_time = std::max(other.virtual_time, forgotten);
}

void RailScheduler::Observe(size_t rail, absl::Time now, uint64_t backlog, uint64_t delivered) {
  Rail& of = rails_[rail];
  if (Measure(of, now, backlog, delivered)) {
    Assess();
  } else {
    AssessLeft(of);
  }
}

bool RailScheduler::Measure(Rail& of, absl::Time now, uint64_t backlog, uint64_t delivered_in_all) {
  const bool was_given = std::exchange(of.given_since, 0) > 0;
  const bool was_busy = std::exchange(of.backlog, backlog) > 0;
  const absl::Duration look = now - std::exchange(of.observed, now);
  const uint64_t delivered = delivered_in_all - std::exchange(of.delivered, delivered_in_all);
  if (!was_busy) {
    of.quiet = absl::ZeroDuration();
    of.carried = 0;
    if (was_given) return false;
    const double rest = std::min(absl::ToDoubleSeconds(look), kLongestRest - of.rest);
    of.rest += rest;
    of.perhaps_idle += rest;
    const bool passed_over = std::any_of(rails_.begin(), rails_.end(), [](const Rail& other) {
      return other.backlog + other.given_since > 0;
    });
    if (!passed_over || !of.measured()) return false;
    Encourage(of, std::min(look, kLongestLook));
    return true;
  }
  of.quiet += look;
  if (delivered == 0) {
    // If no rail delivers anything, the peer may not be reading, which does not show that a rail is
    // slow.
    if (of.quiet < kLump || last_delivery_ <= now - of.quiet) return false;
  } else {
    last_delivery_ = now;
    // Too late to know the arrival time.
    if (look > kLongestQuiet) {
      of.quiet = absl::ZeroDuration();
      return false;
    }
    // An unmeasured rail keeps the long time, which may have been a pause: a rate that is too low
    // at first is better than none.
    if (of.quiet > kLongestQuiet && of.measured()) of.quiet = look;
  }
  const double elapsed = absl::ToDoubleSeconds(std::exchange(of.quiet, absl::ZeroDuration()));
  if (elapsed <= 0) return false;
  of.carried += delivered;
  of.rest = 0;
  return Weigh(of, static_cast<double>(delivered), elapsed, absl::ToDoubleSeconds(look));
}

bool RailScheduler::Weigh(Rail& of, double delivered, double elapsed, double look) {
  const bool dry = of.backlog < kLittle;
  if (!of.measured() && dry && delivered < static_cast<double>(kUnmeasuredBytes)) return false;
  // The data arrived at an unknown time since the last look.
  double unsure = delivered > 0 ? look : 0;
  if (dry && of.measured()) {
    // It ran dry at some time since then, too. And the last bytes have shown only after their way,
    // which is all that few bytes show.
    const bool little = of.carried < kLeastBytes;
    if (little) of.way = std::min(of.way.value_or(elapsed), elapsed);
    const double idle = little ? elapsed : std::min(unsure + of.way.value_or(0), elapsed);
    of.perhaps_idle += idle;
    elapsed -= idle;
    unsure = 0;
  }
  of.seen_bytes += delivered;
  of.seen_seconds += elapsed;
  double took = of.seen_seconds;
  if (of.measured()) {
    const double expected = of.seen_bytes / of.measured_rate();
    const double longest = of.seen_seconds + of.perhaps_idle;
    took = std::clamp(expected, of.seen_seconds - unsure, longest);
    if (took == expected && longest < kLongestTrial) return false;
  }
  const double kept = std::exp(-took / kFadeSeconds);
  of.bytes = of.bytes * kept + of.seen_bytes;
  of.seconds = of.seconds * kept + took;
  // The time that this does not explain is that of what comes next.
  of.perhaps_idle = std::min(of.perhaps_idle - std::max(took - of.seen_seconds, 0.0), kLongestRest);
  of.seen_seconds = std::max(of.seen_seconds - took, 0.0);
  of.seen_bytes = 0;
  return true;
}

void RailScheduler::Assess() {
  double sum = 0;
  int measured = 0;
  for (const Rail& rail : rails_) {
    if (!rail.measured()) continue;
    sum += rail.measured_rate();
    ++measured;
  }
  const double least = Fastest() * kSlowest;
  for (Rail& rail : rails_) {
    rail.rate = measured == 0
                    ? kUnmeasuredRate
                    : std::max(rail.measured() ? rail.measured_rate() : sum / measured, least);
    AssessLeft(rail);
  }
}

void RailScheduler::AssessLeft(Rail& of) {
  of.left = 0;
  const uint64_t held = of.backlog + of.given_since;
  if (held == 0) return;
  // Some of the backlog is gone by now, and only has not shown yet.
  of.left = std::max(static_cast<double>(held) / of.rate -
                         std::min(absl::ToDoubleSeconds(of.quiet), kHiddenSeconds),
                     0.0);
}

double RailScheduler::Fastest() const {
  double fastest = 0;
  for (const Rail& rail : rails_) {
    if (rail.measured()) fastest = std::max(fastest, rail.measured_rate());
  }
  return fastest;
}

void RailScheduler::Encourage(Rail& rail, absl::Duration passed_over) const {
  const double fastest = Fastest();
  const double rate = std::max(rail.measured_rate(), fastest * kSlowest) *
                      std::exp2(absl::ToDoubleSeconds(passed_over) / kSecondChanceSeconds);
  // A guess, that the next measurement outweighs.
  rail.seconds = kLeastSeconds;
  rail.bytes = std::min(rate, fastest) * kLeastSeconds;
}

void RailScheduler::SetUp(size_t rail, bool up) {
  Rail fresh;
  fresh.up = up;
  fresh.standby = rails_[rail].standby;
  fresh.virtual_time = rails_[rail].virtual_time;
  rails_[rail] = fresh;
  Choose();
  Assess();
}

void RailScheduler::SetStandby(size_t rail, bool standby) {
  rails_[rail].standby = standby;
  Choose();
}

void RailScheduler::Choose() {
  const bool any_first = std::any_of(rails_.begin(), rails_.end(),
                                     [](const Rail& rail) { return rail.up && !rail.standby; });
  for (Rail& rail : rails_) rail.takes = rail.up && !(rail.standby && any_first);
}

size_t RailScheduler::Piece(size_t rail) const {
  return rails_[rail].measured() ? Bounded(Rate(rail) * kPieceSeconds) : kUnmeasuredBytes;
}

size_t RailScheduler::Hold(size_t rail) const {
  return rails_[rail].measured() ? Bounded(Rate(rail) * kHoldSeconds) : kUnmeasuredBytes;
}

double RailScheduler::FluidFinish(uint64_t bytes) const {
  // All rails finish together, except those whose backlog takes longer: they get nothing. Leaving
  // them out lowers the level, which may exclude more of them.
  double level = HUGE_VAL;
  while (true) {
    double work = static_cast<double>(bytes);
    double rate = 0;
    for (const Rail& rail : rails_) {
      if (!rail.takes || rail.left >= level) continue;
      work += rail.left * rail.rate;
      rate += rail.rate;
    }
    if (rate == 0) return level;
    const double lower = work / rate;
    if (lower >= level) return level;
    level = lower;
  }
}

double RailScheduler::Turn(size_t rail) const {
  const Rail& of = rails_[rail];
  return of.owing ? of.virtual_time - kFavor / Rate(rail) : of.virtual_time;
}

bool RailScheduler::Sated(size_t rail) const {
  const Rail& of = rails_[rail];
  return of.measured() && of.backlog + of.given_since >= 2 * kLeastBytes &&
         of.left >= kQueueSeconds + 2 * absl::ToDoubleSeconds(of.round_trip);
}

bool RailScheduler::HoldsBack() const {
  return rails_.size() > 1 && std::any_of(rails_.begin(), rails_.end(), [](const Rail& rail) {
           return rail.takes && !rail.full;
         });
}

std::optional<size_t> RailScheduler::Pick(size_t chunk, bool divisible, uint64_t waiting) const {
  if (rails_.size() == 1) {
    return rails_[0].up && !rails_[0].full ? std::optional<size_t>(0) : std::nullopt;
  }
  const auto finish = [&](size_t rail) {
    const size_t bytes = divisible ? std::min(chunk, Piece(rail)) : chunk;
    return rails_[rail].left + static_cast<double>(bytes) / rails_[rail].rate;
  };
  double limit = HUGE_VAL;
  for (size_t i = 0; i < rails_.size(); ++i) {
    if (rails_[i].takes) limit = std::min(limit, finish(i));
  }
  limit = std::max(limit, FluidFinish(waiting)) + kTolerance;
  std::optional<size_t> best;
  for (size_t i = 0; i < rails_.size(); ++i) {
    if (!rails_[i].takes || rails_[i].full || Sated(i) || finish(i) > limit) continue;
    if (!best.has_value() || Turn(i) < Turn(*best)) best = i;
  }
  return best;
}

}  // namespace railhead::rails
