// SPDX-License-Identifier: Apache-2.0
//
// How ranks that share memory tell each other how far they are, and wait for one another.
//
// Every rank has a lane: counters that it alone writes and all others read. They count chunks of
// work, from 1 on, over the whole life of a group, and never go back; so no flag is ever cleared,
// and one collective follows the other without a barrier. (The words that are shared have the low
// 32 bits of it; nobody is ever so far ahead that these would not tell who is.)
#ifndef RAILHEAD_RUNTIME_SHM_LANES_H_
#define RAILHEAD_RUNTIME_SHM_LANES_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/base/clock.h"
#include "runtime/collectives/call.h"
#include "runtime/shm/patience.h"

namespace railhead::shm {

// How many chunks a rank can be ahead of another, and so how many calls.
inline constexpr int64_t kMostAhead = 3;

// In shared memory; all zero at first. Two lanes share no cache line, nor the pair of lines that a
// CPU fetches at once.
struct alignas(128) Lane {
  // Words that other processes sleep on (futex).
  std::atomic<uint32_t> filled{0};    // chunks for which this rank has done what others wait for
  std::atomic<uint32_t> reduced{0};   // chunks of which this rank reads no cell any more
  std::atomic<uint32_t> sleepers{0};  // ranks that sleep on one of them
  // What fits goes with the counters, in their line, instead of through a cell. By the number of
  // its chunk, odd or even.
  std::array<uint64_t, 2> inlined{};
  // What this rank has called (collectives/call.h), by the number of the call's first chunk. In the
  // same line as the counters, so looking costs nothing.
  std::array<std::atomic<uint64_t>, kMostAhead + 1> calls{};
};
static_assert(sizeof(Lane) == 128);

// What a lane counts.
using Progress = std::atomic<uint32_t> Lane::*;

// One rank's view of all lanes. Used by one thread at a time.
class Lanes {
 public:
  // `lanes` by rank; they outlive this.
  Lanes(absl::Span<Lane> lanes, int rank);

  // Says with the next Advance of `filled` what this rank calls; that call's first chunk has this
  // number. Whoever waits for that chunk to be filled compares it with what the others have called,
  // and gets Internal if they contradict each other. (Said at once, it would take the line away
  // from those that look at it one time more.)
  void Expect(int64_t first_chunk, collectives::Call call);

  // Says that this rank has done so many chunks, and wakes who waits for it. What it wrote before
  // is seen by whoever sees the count.
  void Advance(Progress progress, int64_t chunks);

  // Says with the next Advance of `filled` that this rank has reduced so many: not to take the line
  // away twice from those that look at it. Who waits for it does until this rank's next collective.
  void AdvanceLater(int64_t reduced) { owed_ = reduced; }

  // Where a rank's input of at most so many bytes is for a chunk: this rank writes its own when all
  // have reduced the chunk two before, and then fills.
  static constexpr size_t kInlined = sizeof(uint64_t);
  std::byte* Inlined(size_t rank, int64_t chunk) const {
    return reinterpret_cast<std::byte*>(&lanes_[rank].inlined[static_cast<size_t>(chunk % 2)]);
  }

  // Waits until all ranks have done so many, or one has. The error says which have not, and how far
  // they are.
  absl::Status AwaitAll(Progress progress, int64_t chunks, const Patience& patience);
  absl::Status Await(size_t rank, Progress progress, int64_t chunks, const Patience& patience);

 private:
  absl::Status WaitFor(size_t rank, Progress progress, int64_t chunks, const Patience& patience);
  bool Seen(size_t rank, Progress progress, int64_t chunks);
  absl::Status Compare(size_t rank) const;
  absl::Status Late(Progress progress, int64_t chunks, absl::Duration waited) const;

  const absl::Span<Lane> lanes_;
  const size_t rank_;
  // What was seen last, by rank: mostly enough, without a look at another core's cache line.
  std::vector<int64_t> seen_filled_;
  std::vector<int64_t> seen_reduced_;
  int64_t owed_ = 0;  // chunks reduced that are not told of; 0: all are
  int64_t first_chunk_ = 0;
  collectives::Call call_;
  bool told_ = true;  // the others of this call
  Clock clock_;
};

}  // namespace railhead::shm

#endif  // RAILHEAD_RUNTIME_SHM_LANES_H_
