// SPDX-License-Identifier: Apache-2.0
//
// Rail scheduler: selects the rail of the next chunk. Rails with room pull, so each carries what it
// can; but a chunk stays with its rail, and a slow rail that took one at the end of a transfer
// would delay it. So each rail's goodput is measured, a rail holds only what it sends within a few
// milliseconds, and it gets a chunk only if it will finish it before all rails together could
// finish everything (the fluid optimum), or before any other rail could finish this chunk.
// Otherwise the chunk waits.
//
// The time a rail worked on arrived data is not known exactly: it is visible only when this process
// polls, a rail may have run dry long before, and an idle rail may have saved credit for a burst.
// So arrivals bound the rate from both sides, more tightly the more there are, and the assumed rate
// stays unchanged between the bounds.
//
// Data of a rail counts until it has arrived. A network accepts much more than it carries, and
// congestion control finds out only by filling queues: queued data is lost to other rails, and data
// that does not fit is dropped and costs the time of its retransmission.
//
// Pure: no clock, no link. Used by Peer, which reports all events.
#ifndef RAILHEAD_RUNTIME_RAILS_RAIL_SCHEDULER_H_
#define RAILHEAD_RUNTIME_RAILS_RAIL_SCHEDULER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/time/time.h"

namespace railhead::rails {

class RailScheduler {
 public:
  explicit RailScheduler(size_t rails) : rails_(rails) { Assess(); }

  // Notes that the rail has taken `bytes`.
  void Give(size_t rail, size_t bytes);
  // Notes that `backlog` bytes taken by the rail have not reached the peer, and that `delivered`
  // bytes have, in total since the rail was up.
  void Observe(size_t rail, absl::Time now, uint64_t backlog, uint64_t delivered);
  // Sets the round-trip time of the idle rail.
  void SetRoundTrip(size_t rail, absl::Duration round_trip) {
    rails_[rail].round_trip = round_trip;
  }
  // Marks the rail as without room, or with room again.
  void SetFull(size_t rail, bool full) { rails_[rail].full = full; }
  // The next chunk on the rail also carries an acknowledgement: among equal rails it is preferred,
  // which saves a message. Cleared by Give.
  void SetOwing(size_t rail, bool owing) { rails_[rail].owing = owing; }
  bool Owes(size_t rail) const { return rails_[rail].owing; }
  // A rail that is down gets nothing. Its data no longer counts, and its old rate may differ from
  // its rate after it returns.
  void SetUp(size_t rail, bool up);
  // A standby rail gets nothing while a rail that is none is up.
  void SetStandby(size_t rail, bool standby);

  // Returns the rail of the next chunk; nullopt if it must wait. `chunk` bytes are next, of
  // `waiting` in total. If `divisible`, the rail gets at most its Piece of them.
  std::optional<size_t> Pick(size_t chunk, bool divisible, uint64_t waiting) const;

  // Returns true if some rail has room but gets nothing now; time alone may change that.
  bool HoldsBack() const;

  // Maximum bytes to give the rail at once, and to let it hold unsent.
  size_t Piece(size_t rail) const;
  size_t Hold(size_t rail) const;

  // Measured bytes per second; estimated from other rails if not measured yet.
  double Rate(size_t rail) const { return rails_[rail].rate; }

 private:
  struct Rail {
    bool up = true;
    bool standby = false;
    bool takes = true;  // it is up, and its turn has come if it is a standby
    bool full = false;
    bool owing = false;
    uint64_t backlog = 0;  // at the last observation, plus what was given since
    uint64_t given_since = 0;
    uint64_t delivered = 0;  // at the last observation
    absl::Time observed;
    absl::Duration quiet;  // busy since the last delivery, not counted yet
    absl::Duration round_trip;
    uint64_t carried = 0;       // since it was last idle
    std::optional<double> way;  // minimum seconds from a small chunk to its acknowledgement
    double rest = 0;            // seconds of idle time
    // Observations since the last measurement: bytes, seconds of work, and seconds in which it may
    // have been idle or sending saved credit.
    double seen_bytes = 0;
    double seen_seconds = 0;
    double perhaps_idle = 0;
    // Delivered bytes and busy seconds, with exponential decay.
    double bytes = 0;
    double seconds = 0;
    // Virtual time of its share of all chunks given.
    double virtual_time = 0;

    // Cached results of the above: assumed rate, and seconds until it finishes what it has.
    double rate = 0;
    double left = 0;

    bool measured() const;
    double measured_rate() const { return bytes / seconds; }
  };

  // Part of Observe; returns true if it measured the rail's rate.
  bool Measure(Rail& of, absl::Time now, uint64_t backlog, uint64_t delivered_in_all);
  // Processes `delivered` bytes after `elapsed` seconds of work, `look` seconds after the last
  // observation.
  static bool Weigh(Rail& of, double delivered, double elapsed, double look);
  // Updates `takes` of all rails.
  void Choose();
  // Updates the cached results.
  void Assess();
  static void AssessLeft(Rail& of);
  double Fastest() const;
  // Raises the assumed rate of a rail that is passed over, until it is tried again.
  void Encourage(Rail& rail, absl::Duration passed_over) const;

  // The rail with the lowest value gets the next chunk.
  double Turn(size_t rail) const;
  // Returns true if the rail has work until its next acknowledgements.
  bool Sated(size_t rail) const;
  // Returns the seconds in which all rails together could finish `bytes` more.
  double FluidFinish(uint64_t bytes) const;

  std::vector<Rail> rails_;
  absl::Time last_delivery_ = absl::InfinitePast();
};

}  // namespace railhead::rails

#endif  // RAILHEAD_RUNTIME_RAILS_RAIL_SCHEDULER_H_
