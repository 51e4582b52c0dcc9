// SPDX-License-Identifier: Apache-2.0
#include "runtime/shm/lanes.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "runtime/shm/futex.h"
#include "runtime/shm/limits.h"

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

void Lanes::Advance(Progress progress, int64_t chunk) {
  Lane& lane = lanes_[rank_];
  const int64_t reduced = progress == Progress::kReduced ? chunk : std::max(reduced_, owed_);
  const bool more_reduced = reduced > reduced_;
  reduced_ = reduced;
  // The last of these stores is in one order with a sleeper's announcement and its last look: one
  // of the two sees the other.
  if (more_reduced) {
    lane.reduced.store(static_cast<uint32_t>(reduced), progress == Progress::kReduced
                                                           ? std::memory_order_seq_cst
                                                           : std::memory_order_release);
  }
  Notice& notice = NoticeOf(rank_, chunk);
  if (progress == Progress::kFilled) {
    if (chunk == first_chunk_) notice.call.store(call_.word(), std::memory_order_relaxed);
    notice.reduced.store(static_cast<uint32_t>(reduced), std::memory_order_relaxed);
    notice.filled.store(static_cast<uint32_t>(chunk), std::memory_order_seq_cst);
  }
  if (lane.sleepers.load(std::memory_order_seq_cst) == 0) return;
  if (more_reduced) FutexWakeAll(lane.reduced);
  if (progress == Progress::kFilled) FutexWakeAll(notice.filled);
}

bool Lanes::Seen(size_t rank, Progress progress, int64_t chunk) {
  int64_t& filled = seen_filled_[rank];
  int64_t& reduced = seen_reduced_[rank];
  int64_t& seen = progress == Progress::kFilled ? filled : reduced;
  if (seen >= chunk) return true;
  seen = std::max(seen, Extend(Word(rank, progress, chunk).load(std::memory_order_acquire), chunk));
  if (seen < chunk) return false;
  if (progress == Progress::kFilled) {
    const uint32_t word = NoticeOf(rank, chunk).reduced.load(std::memory_order_relaxed);
    reduced = std::max(reduced, Extend(word, chunk));
  }
  return true;
}

absl::Status Lanes::AwaitAll(Progress progress, int64_t chunk, const Patience& patience) {
  for (size_t step = 1; step < lanes_.size(); ++step) {
    // Each rank begins with a different one.
    const size_t rank = (rank_ + step) % lanes_.size();
    if (absl::Status status = Await(rank, progress, chunk, patience); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Lanes::Await(size_t rank, Progress progress, int64_t chunk, const Patience& patience) {
  if (!Seen(rank, progress, chunk)) {
    if (absl::Status come = WaitFor(rank, progress, chunk, patience); !come.ok()) return come;
  }
  return progress == Progress::kFilled && chunk == first_chunk_ ? Compare(rank) : absl::OkStatus();
}

void Lanes::Withdraw() {
  lanes_[rank_].withdrawn.store(first_chunk_, std::memory_order_relaxed);
  // Before whatever this process writes to its memory from now on.
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

absl::Status Lanes::NoneWithdrew(int64_t chunk) const {
  // After what was read of other ranks' memory.
  std::atomic_thread_fence(std::memory_order_acquire);
  for (size_t rank = 0; rank < lanes_.size(); ++rank) {
    const int64_t withdrawn = lanes_[rank].withdrawn.load(std::memory_order_relaxed);
    if (withdrawn == 0 || withdrawn > chunk) continue;
    return absl::UnavailableError(
        absl::StrCat("rank ", rank, " has failed in this call, so its data may have changed"));
  }
  return absl::OkStatus();
}

void Lanes::Expect(int64_t first_chunk, collectives::Call call, size_t bytes) {
  // Getting these lines is a third of the time of a small collective: it begins early.
  const size_t used = offsetof(Notice, inlined) + (bytes <= kInlined ? bytes : 0);
  const auto* notice = reinterpret_cast<const std::byte*>(&NoticeOf(rank_, first_chunk));
  for (size_t at = 0; at < used; at += kLine) FetchToWrite(notice + at);
  first_chunk_ = first_chunk;
  call_ = call;
}

absl::Status Lanes::Compare(size_t rank) const {
  const collectives::Call theirs(NoticeOf(rank, first_chunk_).call.load(std::memory_order_relaxed));
  if (theirs == call_) return absl::OkStatus();
  return absl::InternalError(
      collectives::Contradiction(absl::StrCat("rank ", rank), theirs, call_));
}

absl::Status Lanes::CompareUnawaited() {
  // In one order with the other ranks' stores and loads here: of two ranks, one sees the other.
  lanes_[rank_].unawaited.store(first_chunk_, std::memory_order_seq_cst);
  for (size_t step = 1; step < lanes_.size(); ++step) {
    const size_t rank = (rank_ + step) % lanes_.size();
    // A rank that has come this far has filled the chunk before, and is not far enough ahead of
    // this one for its notice to be of a later chunk.
    if (lanes_[rank].unawaited.load(std::memory_order_seq_cst) < first_chunk_) continue;
    if (absl::Status same = Compare(rank); !same.ok()) return same;
  }
  return absl::OkStatus();
}

absl::Status Lanes::WaitFor(size_t rank, Progress progress, int64_t chunk,
                            const Patience& patience) {
  const auto look = [&] {
    for (int i = 0; i < patience.LooksAtOnce(); ++i) {
      if (Seen(rank, progress, chunk)) return true;
      patience.BetweenLooks();
    }
    return false;
  };
  // Most progress comes within the time of a clock read.
  if (look()) return absl::OkStatus();
  int64_t start = clock_.Now();
  const int64_t looking = absl::ToInt64Nanoseconds(patience.look);
  for (int64_t waited = 0; waited < looking; waited = clock_.Now() - start) {
    if (look()) return absl::OkStatus();
    patience.AfterLooks(waited);
  }
  Lane& lane = lanes_[rank];
  const std::atomic<uint32_t>& word = Word(rank, progress, chunk);
  while (true) {
    lane.sleepers.fetch_add(1, std::memory_order_seq_cst);
    const uint32_t value = word.load(std::memory_order_seq_cst);
    if (Extend(value, chunk) < chunk) FutexWait(word, value, kLongestSleep);
    lane.sleepers.fetch_sub(1, std::memory_order_relaxed);
    if (Seen(rank, progress, chunk)) return absl::OkStatus();
    const absl::Duration waited = absl::Nanoseconds(clock_.Now() - start);
    const absl::StatusOr<bool> anew =
        patience.Check(waited, [&] { return Late(progress, chunk, waited); });
    // It may have arrived during the query of all ranks.
    if (!anew.ok() && Seen(rank, progress, chunk)) return absl::OkStatus();
    if (!anew.ok()) return anew.status();
    if (*anew) start = clock_.Now();
  }
}

int64_t Lanes::HowFar(size_t rank, Progress progress, int64_t near) const {
  int64_t furthest = 0;
  for (int64_t chunk = near; chunk < near + kMostAhead + 1; ++chunk) {
    const uint32_t word = Word(rank, progress, chunk).load(std::memory_order_acquire);
    furthest = std::max(furthest, Extend(word, near));
  }
  return furthest;
}

absl::Status Lanes::Late(Progress progress, int64_t chunk, absl::Duration waited) const {
  std::string late;
  for (size_t rank = 0; rank < lanes_.size(); ++rank) {
    const int64_t count = HowFar(rank, progress, chunk);
    if (rank == rank_ || count >= chunk) continue;
    absl::StrAppend(&late, late.empty() ? "" : ", ", "rank ", rank, " (", chunk - count,
                    " chunks behind)");
  }
  return absl::DeadlineExceededError(absl::StrCat(
      "nothing has moved for ", absl::FormatDuration(absl::Trunc(waited, absl::Seconds(1))),
      " in shared memory; waiting for ", late));
}

}  // namespace railhead::shm
