// SPDX-License-Identifier: Apache-2.0
#include "runtime/shm/lanes.h"

#include "absl/strings/str_cat.h"
#include "runtime/shm/futex.h"

namespace railhead::shm {
namespace {

// The count that ends in these 32 bits, of those around `near`.
int64_t Extend(uint32_t word, int64_t near) {
  return near + static_cast<int32_t>(word - static_cast<uint32_t>(near));
}

}  // namespace

Lanes::Lanes(absl::Span<Lane> lanes, int rank)
    : lanes_(lanes),
      rank_(static_cast<size_t>(rank)),
      seen_filled_(lanes.size(), 0),
      seen_reduced_(lanes.size(), 0) {}

void Lanes::Advance(Progress progress, int64_t chunks) {
  Lane& lane = lanes_[rank_];
  std::atomic<uint32_t>& word = lane.*progress;
  if (progress == &Lane::filled && !told_) {
    lane.calls[static_cast<size_t>(first_chunk_ % (kMostAhead + 1))].store(
        call_.word(), std::memory_order_relaxed);
    told_ = true;
  }
  const bool owed = owed_ > 0;
  if (owed) {
    lane.reduced.store(static_cast<uint32_t>(owed_), std::memory_order_release);
    owed_ = 0;
  }
  // In one order with a sleeper's announcement and its last look: one of the two sees the other.
  word.store(static_cast<uint32_t>(chunks), std::memory_order_seq_cst);
  if (lane.sleepers.load(std::memory_order_seq_cst) == 0) return;
  FutexWakeAll(word);
  if (owed) FutexWakeAll(lane.reduced);
}

bool Lanes::Seen(size_t rank, Progress progress, int64_t chunks) {
  int64_t& seen = progress == &Lane::filled ? seen_filled_[rank] : seen_reduced_[rank];
  if (seen >= chunks) return true;
  seen = Extend((lanes_[rank].*progress).load(std::memory_order_acquire), chunks);
  return seen >= chunks;
}

absl::Status Lanes::AwaitAll(Progress progress, int64_t chunks, const Patience& patience) {
  for (size_t step = 1; step < lanes_.size(); ++step) {
    // Everybody begins with somebody else.
    const size_t rank = (rank_ + step) % lanes_.size();
    if (absl::Status status = Await(rank, progress, chunks, patience); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Lanes::Await(size_t rank, Progress progress, int64_t chunks,
                          const Patience& patience) {
  if (!Seen(rank, progress, chunks)) {
    if (absl::Status come = WaitFor(rank, progress, chunks, patience); !come.ok()) return come;
  }
  return progress == &Lane::filled && chunks == first_chunk_ ? Compare(rank) : absl::OkStatus();
}

void Lanes::Expect(int64_t first_chunk, collectives::Call call) {
  first_chunk_ = first_chunk;
  call_ = call;
  told_ = false;
}

absl::Status Lanes::Compare(size_t rank) const {
  const collectives::Call theirs(
      lanes_[rank].calls[static_cast<size_t>(first_chunk_ % (kMostAhead + 1))].load(
          std::memory_order_relaxed));
  if (theirs == call_) return absl::OkStatus();
  return absl::InternalError(
      collectives::Contradiction(absl::StrCat("rank ", rank), theirs, call_));
}

absl::Status Lanes::WaitFor(size_t rank, Progress progress, int64_t chunks,
                            const Patience& patience) {
  const auto look = [&] {
    for (int i = 0; i < patience.LooksAtOnce(); ++i) {
      if (Seen(rank, progress, chunks)) return true;
      patience.BetweenLooks();
    }
    return false;
  };
  // Most come while the time would be asked for.
  if (look()) return absl::OkStatus();
  const int64_t start = clock_.Now();
  const int64_t looking = absl::ToInt64Nanoseconds(patience.look);
  for (int64_t waited = 0; waited < looking; waited = clock_.Now() - start) {
    if (look()) return absl::OkStatus();
    patience.AfterLooks(waited);
  }
  Lane& lane = lanes_[rank];
  const std::atomic<uint32_t>& word = lane.*progress;
  while (true) {
    lane.sleepers.fetch_add(1, std::memory_order_seq_cst);
    const uint32_t value = word.load(std::memory_order_seq_cst);
    if (Extend(value, chunks) < chunks) FutexWait(word, value, kLongestSleep);
    lane.sleepers.fetch_sub(1, std::memory_order_relaxed);
    if (Seen(rank, progress, chunks)) return absl::OkStatus();
    if (patience.cancelled != nullptr && patience.cancelled->load(std::memory_order_acquire)) {
      return absl::CancelledError("the job has failed");
    }
    const absl::Duration waited = absl::Nanoseconds(clock_.Now() - start);
    if (waited >= patience.limit) return Late(progress, chunks, waited);
  }
}

absl::Status Lanes::Late(Progress progress, int64_t chunks, absl::Duration waited) const {
  std::string late;
  for (size_t rank = 0; rank < lanes_.size(); ++rank) {
    const int64_t count = Extend((lanes_[rank].*progress).load(std::memory_order_acquire), chunks);
    if (rank == rank_ || count >= chunks) continue;
    absl::StrAppend(&late, late.empty() ? "" : ", ", "rank ", rank, " (", chunks - count,
                    " chunks behind)");
  }
  return absl::DeadlineExceededError(absl::StrCat(
      "nothing has moved for ", absl::FormatDuration(absl::Trunc(waited, absl::Seconds(1))),
      " in shared memory; waiting for ", late));
}

}  // namespace railhead::shm
