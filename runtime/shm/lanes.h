// SPDX-License-Identifier: Apache-2.0
//
// Progress counters of ranks that share memory, and waits for them.
//
// Every rank has a lane: counters that it alone writes and all others read. They count chunks of
// work from 1 over the life of a group, and never decrease; so no flag is cleared, and collectives
// follow each other without a barrier. (Shared words have the low 32 bits, which are unambiguous
// for the distance that ranks can have.)
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

// Maximum chunks, and so calls, by which a rank can be ahead of another. If ranks outnumber cores,
// a rank that need not wait for others makes up to this many small calls before it gives its core
// to one of them.
inline constexpr int64_t kMostAhead = 63;

// Flags of one chunk: a waiting rank gets all of them with one read. Recent chunks have separate
// ones, so that a rank can write one while no other reads it.
struct alignas(64) Notice {
  std::atomic<uint32_t> filled{0};   // number of the chunk, when this rank has filled it
  std::atomic<uint32_t> reduced{0};  // number of the last chunk reduced before that
  std::atomic<uint64_t> call{0};     // the call, if it starts with this chunk
  // Small data, instead of in a cell.
  std::array<std::byte, 560> inlined{};
  // Padding: CPUs prefetch beyond what is read, and must not take the next flags from their writer.
  std::array<std::byte, 576> gap{};
};
static_assert(sizeof(Notice) == 1152);

// In shared memory; initially zero. Two lanes share neither a cache line nor the pair of lines that
// a CPU prefetches.
struct alignas(128) Lane {
  // Futex words of other processes, besides those of the notices.
  std::atomic<uint32_t> reduced{0};   // chunks whose cells this rank no longer reads
  std::atomic<uint32_t> sleepers{0};  // ranks sleeping on a word of this lane
  Spread::Core core{0};               // core on which this rank last waited
  // First chunk of the call in which this rank has failed: its memory may change since. 0: none.
  std::atomic<int64_t> withdrawn{0};
  std::array<std::byte, 104> gap{};  // so that the next line is written on its own
  // Last chunk that starts a call in which this rank waits for no other.
  std::atomic<int64_t> unawaited{0};
  std::array<std::byte, 120> second_gap{};
  std::array<Notice, kMostAhead + 1> notices;  // by number of the chunk
};

// Fact about a chunk in a lane.
enum class Progress : uint8_t { kFilled, kReduced };

// One rank's view of all lanes. Use from one thread at a time.
class Lanes {
 public:
  // `lanes` by rank; must outlive this.
  Lanes(absl::Span<Lane> lanes, int rank);

  // Publishes this rank's call when `first_chunk` is filled. Ranks that wait for that chunk compare
  // it with their own call, and get Internal if they contradict. `bytes` are inlined in the chunk,
  // if they fit.
  void Expect(int64_t first_chunk, collectives::Call call, size_t bytes);

  // Compares the call with those of other ranks that wait for no one, for such a rank that has just
  // filled the call's first chunk: of any two, the later detects a contradiction. A rank that waits
  // compares its call with the awaited one, and so all ranks are compared, directly or not.
  absl::Status CompareUnawaited();

  // Fetches a rank's notice of the chunk after this one, for ranks that only follow that rank.
  void FetchNext(size_t rank, int64_t chunk) const {
    __builtin_prefetch(&NoticeOf(rank, chunk + 1));
  }

  // Publishes that this rank has filled, or reduced, all chunks up to this one, and wakes ranks
  // waiting for it, with release semantics. Chunks are filled one by one.
  void Advance(Progress progress, int64_t chunk);

  // Publishes with the next filled chunk that this one is reduced, to spare readers a cache miss.
  // Ranks waiting for it wait until this rank's next collective.
  void ReducedLater(int64_t chunk) { owed_ = chunk; }

  // Inlined data of a chunk, at most kInlined bytes: this rank writes its own when it may write its
  // cell (group.h), before filling.
  static constexpr size_t kInlined = sizeof(Notice::inlined);
  std::byte* Inlined(size_t rank, int64_t chunk) const {
    return NoticeOf(rank, chunk).inlined.data();
  }

  // Publishes that this rank has failed in its current call. Its memory may change afterwards.
  void Withdraw();
  // Unavailable if a rank has failed in a call that began by this chunk: what was read of its
  // memory may have changed before.
  absl::Status NoneWithdrew(int64_t chunk) const;

  // Wait until all ranks, or one, have filled or reduced the chunk. Errors name the ranks that have
  // not, and their positions.
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
  // Last values read, by rank: mostly sufficient without reading another core's cache line.
  std::vector<int64_t> seen_filled_;
  std::vector<int64_t> seen_reduced_;
  int64_t reduced_ = 0;  // published value of this rank
  int64_t owed_ = 0;     // to be published with the next filled chunk
  int64_t first_chunk_ = 0;
  collectives::Call call_;
  Clock clock_;
};

}  // namespace railhead::shm

#endif  // RAILHEAD_RUNTIME_SHM_LANES_H_
