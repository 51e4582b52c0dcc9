// SPDX-License-Identifier: Apache-2.0
//
// Which of several rails gets the next chunk. Rails that have room pull, so each carries what it
// can; but what a rail has been given it keeps, and a slow one that took a chunk at the end of a
// transfer would be waited for. So every rail's goodput is measured, a rail may hold only what it
// sends within a few milliseconds, and it gets a chunk only if it will be done with it before all
// rails together could be done with everything (the fluid optimum), or before any other rail could
// be done with this chunk. Else the chunk is better off waiting.
//
// How long it worked on what has arrived is not known exactly. It is seen only when this process
// looks, a rail that has run dry may have done so long before, and one that has rested may have
// saved up for a burst. So what arrives bounds the rate from both sides, the more closely the more
// it is, and the rate that a rail is taken for stays where it is as long as it is between them.
//
// What a rail holds counts until it has arrived. A network takes much more than it carries at once,
// and congestion control finds out only by filling its queues: what stands there is lost to the
// other rails, and what does not fit is lost altogether, with the time of its repetition.
//
// Knows no clock and no link: it is told what happens.
#ifndef RAILHEAD_RUNTIME_RAILS_SHARES_H_
#define RAILHEAD_RUNTIME_RAILS_SHARES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/time/time.h"

namespace railhead::rails {

class Shares {
 public:
  explicit Shares(size_t rails) : rails_(rails) { Assess(); }

  // The rail has taken `bytes`.
  void Give(size_t rail, size_t bytes);
  // `backlog` bytes of what the rail has taken have not reached the peer yet; `delivered` bytes
  // have, these or others, since the rail was up.
  void Observe(size_t rail, absl::Time now, uint64_t backlog, uint64_t delivered);
  // How long a byte and its acknowledgement take on the rail while it is idle.
  void SetRoundTrip(size_t rail, absl::Duration round_trip) {
    rails_[rail].round_trip = round_trip;
  }
  // The rail has no room, until it is said to have some again.
  void SetFull(size_t rail, bool full) { rails_[rail].full = full; }
  // The next chunk on the rail also tells the peer of frames that were taken: one that is as good
  // as the others gets it, which spares a message. Until it was given something.
  void SetOwing(size_t rail, bool owing) { rails_[rail].owing = owing; }
  // A rail that is not up gets nothing. What it held is no longer its business, and how fast it was
  // says little about how fast it comes back.
  void SetUp(size_t rail, bool up);

  // The rail that takes the next chunk; nothing when that must wait. `chunk` bytes are the next in
  // line, of `waiting` in all. If `divisible`, the rail is given at most its piece of them.
  std::optional<size_t> Pick(size_t chunk, bool divisible, uint64_t waiting) const;

  // Whether some rail has room and yet gets nothing for now: time alone may change that.
  bool HoldsBack() const;

  // The most that the rail should be given at once, and that it should hold unsent.
  size_t Piece(size_t rail) const;
  size_t Hold(size_t rail) const;

  // Measured bytes per second; that of a rail not yet measured is guessed from the others.
  double Rate(size_t rail) const { return rails_[rail].rate; }

 private:
  struct Rail {
    bool up = true;
    bool full = false;
    bool owing = false;
    uint64_t backlog = 0;  // at the last observation, and what was given since
    uint64_t given_since = 0;
    uint64_t delivered = 0;  // at the last observation
    absl::Time observed;
    absl::Duration quiet;  // busy since the last delivery, and not counted yet
    absl::Duration round_trip;
    uint64_t carried = 0;       // since it was last idle
    std::optional<double> way;  // the least seconds from a little chunk to its acknowledgement
    double rest = 0;            // seconds for which it has been idle
    // What was seen since it was last measured: bytes in seconds of work, and in so many more if it
    // was idle, or did then what it had saved up for.
    double seen_bytes = 0;
    double seen_seconds = 0;
    double perhaps_idle = 0;
    // What was delivered in how much busy time, the past fading.
    double bytes = 0;
    double seconds = 0;
    // How long its share of all chunks so far takes it.
    double virtual_time = 0;

    // What follows from the above, and is asked for much more often than it changes: what it is
    // taken for, and the seconds until it is done with what it has.
    double rate = 0;
    double left = 0;

    bool measured() const;
    double measured_rate() const { return bytes / seconds; }
  };

  // Of Observe: whether it tells how fast a rail is.
  bool Measure(Rail& of, absl::Time now, uint64_t backlog, uint64_t delivered_in_all);
  // `delivered` bytes showed after `elapsed` seconds of work, `look` seconds after the last look.
  static bool Weigh(Rail& of, double delivered, double elapsed, double look);
  // What follows from new measurements.
  void Assess();
  static void AssessLeft(Rail& of);
  double Fastest() const;
  // A rail that is passed over is taken for faster and faster, until it is tried again.
  void Encourage(Rail& rail, absl::Duration passed_over) const;

  // Who is least gets the next chunk.
  double Turn(size_t rail) const;
  // Whether the rail has enough to be busy with until its next acknowledgements are there.
  bool Sated(size_t rail) const;
  // Seconds after which all rails together would be done with `bytes` more.
  double FluidFinish(uint64_t bytes) const;

  std::vector<Rail> rails_;
  absl::Time last_delivery_ = absl::InfinitePast();
};

}  // namespace railhead::rails

#endif  // RAILHEAD_RUNTIME_RAILS_SHARES_H_
