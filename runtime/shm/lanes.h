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
#include "runtime/shm/spread.h"

namespace railhead::shm {

// How many chunks a rank can be ahead of another, and so how many calls.
inline constexpr int64_t kMostAhead = 3;

// What a rank says of one chunk: who waits for it to be filled gets all of it with one look. Each
// of the last chunks has its own, so that a rank can write one while nobody looks at it.
struct alignas(64) Notice {
  std::atomic<uint32_t> filled{0};   // the chunk, when this rank has done what others wait for
  std::atomic<uint32_t> reduced{0};  // what it had reduced by then
  std::atomic<uint64_t> call{0};     // what it has called, if that begins with this chunk
  // What fits goes along, instead of through a cell.
  std::array<std::byte, 560> inlined{};
  // CPUs fetch ahead of what is read: they are not to take the next notice from its writer.
  std::array<std::byte, 576> gap{};
};
static_assert(sizeof(Notice) == 1152);

// In shared memory; all zero at first. Two lanes share no cache line, nor the pair of lines that a
// CPU fetches at once.
struct alignas(128) Lane {
  // Words that other processes sleep on (futex), besides those of the notices.
  std::atomic<uint32_t> reduced{0};            // chunks of which this rank reads no cell any more
  std::atomic<uint32_t> sleepers{0};           // ranks that sleep on a word of this lane
  Spread::Core core{0};                        // where this rank has last waited
  std::array<Notice, kMostAhead + 1> notices;  // by the number of the chunk
};

// What a lane says of a chunk.
enum class Progress : uint8_t { kFilled, kReduced };

// One rank's view of all lanes. Used by one thread at a time.
class Lanes {
 public:
  // `lanes` by rank; they outlive this.
  Lanes(absl::Span<Lane> lanes, int rank);

  // Says when that chunk is filled what this rank calls; it is the call's first. Whoever waits for
  // it to be filled compares it with what the others have called, and gets Internal if they
  // contradict each other. `bytes` go along with the chunk, if they fit.
  void Expect(int64_t first_chunk, collectives::Call call, size_t bytes);

  // Compares it with those that have filled that chunk by now, for a rank that has just done so
  // and does not wait for all others: of any two, the later one sees what the other calls.
  absl::Status CompareWithThoseHere();

  // Says that this rank has filled, or reduced, this chunk and all before, and wakes who waits for
  // it. What it wrote before is seen by whoever sees that. Chunks are filled one by one.
  void Advance(Progress progress, int64_t chunk);

  // Says along with the next chunk filled that this one is reduced: not to take a line away from
  // those that look at it. Who waits for it does until this rank's next collective.
  void ReducedLater(int64_t chunk) { owed_ = chunk; }

  // What a rank says along with a chunk, at most so many bytes: this rank writes its own when it
  // may write its cell (group.h), and then fills.
  static constexpr size_t kInlined = sizeof(Notice::inlined);
  std::byte* Inlined(size_t rank, int64_t chunk) const {
    return NoticeOf(rank, chunk).inlined.data();
  }

  // Waits until all ranks, or one, have filled or reduced the chunk. The error says which have not,
  // and how far they are.
  absl::Status AwaitAll(Progress progress, int64_t chunk, const Patience& patience);
  absl::Status Await(size_t rank, Progress progress, int64_t chunk, const Patience& patience);

 private:
  Notice& NoticeOf(size_t rank, int64_t chunk) const {
    return lanes_[rank].notices[static_cast<size_t>(chunk) % (kMostAhead + 1)];
  }
  const std::atomic<uint32_t>& Word(size_t rank, Progress progress, int64_t chunk) const {
    return progress == Progress::kFilled ? NoticeOf(rank, chunk).filled : lanes_[rank].reduced;
  }
  bool Seen(size_t rank, Progress progress, int64_t chunk);
  absl::Status WaitFor(size_t rank, Progress progress, int64_t chunk, const Patience& patience);
  absl::Status Compare(size_t rank) const;
  absl::Status Late(Progress progress, int64_t chunk, absl::Duration waited) const;
  int64_t HowFar(size_t rank, Progress progress, int64_t near) const;

  const absl::Span<Lane> lanes_;
  const size_t rank_;
  // What was seen last, by rank: mostly enough, without a look at another core's cache line.
  std::vector<int64_t> seen_filled_;
  std::vector<int64_t> seen_reduced_;
  int64_t reduced_ = 0;  // what is told of this rank's, and
  int64_t owed_ = 0;     // what is to be told with the next chunk that is filled
  int64_t first_chunk_ = 0;
  collectives::Call call_;
  Clock clock_;
};

}  // namespace railhead::shm

#endif  // RAILHEAD_RUNTIME_SHM_LANES_H_
