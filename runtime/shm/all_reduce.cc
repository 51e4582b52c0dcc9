// SPDX-License-Identifier: Apache-2.0
//
// All-reduce in three stages that overlap: fill (copy my input of chunk k+1 into my cell), reduce
// (my part of chunk k, of all ranks' inputs at once, into a result cell), and drain (copy the parts
// that the others have reduced of chunk k-1). Small messages take one stage: each rank fills, and
// reduces everything for itself.
//
// Reduce is the same, with one rank alone that wants the result.
#include <algorithm>

#include "runtime/base/round_up.h"
#include "runtime/shm/group.h"
#include "runtime/shm/limits.h"
#include "runtime/shm/stores.h"

namespace railhead::shm {

absl::Status Group::AllReduce(const reduce::Reduction& reduction, const std::byte* send,
                              std::byte* receive, size_t count, const Patience& patience) {
  return ReduceFor(ranks_, reduction, send, receive, count, patience);
}

absl::Status Group::Reduce(const reduce::Reduction& reduction, const std::byte* send,
                           std::byte* receive, size_t count, int root, const Patience& patience) {
  const bool wanted = rank_ == static_cast<size_t>(root);
  return ReduceFor(1, reduction, send, wanted ? receive : nullptr, count, patience);
}

absl::Status Group::ReduceFor(size_t readers, const reduce::Reduction& reduction,
                              const std::byte* send, std::byte* receive, size_t count,
                              const Patience& patience) {
  if (count == 0) return absl::OkStatus();
  const size_t element = reduce::SizeOf(reduction.type);
  const size_t bytes = count * element;
  const Work work = {reduction,
                     send,
                     receive,
                     readers,
                     element,
                     bytes,
                     std::min(kLargestChunk, RoundUp((bytes + 1) / 2, kLine)),
                     StoresFor((ranks_ + readers) * bytes),
                     patience};
  const absl::StatusOr<bool> met =
      Meet({send, bytes}, {receive, receive != nullptr ? bytes : 0}, bytes, patience);
  if (!met.ok()) return met.status();
  if (*met) return ReduceDirectly(work);
  return bytes <= kAtOnce ? AtOnce(work) : InChunks(work);
}

absl::Status Group::AtOnce(const Work& work) {
  const int64_t number = Number(0);
  const bool inlined = work.bytes <= Lanes::kInlined;
  const auto input = [&](size_t rank) {
    return inlined ? lanes_.Inlined(rank, number) : Cell(rank, number);
  };
  if (absl::Status free = AwaitPlace(number, inlined, work.patience); !free.ok()) return free;
  reduce::Copy(work.send, input(rank_), work.bytes, reduce::Stores::kNormal);
  lanes_.Advance(Progress::kFilled, number);
  size_t taken = 0;
  if (work.receive != nullptr) {
    if (absl::Status filled = lanes_.AwaitAll(Progress::kFilled, number, work.patience);
        !filled.ok()) {
      return filled;
    }
    for (size_t rank = 0; rank < ranks_; ++rank) {
      inputs_[rank] = rank == rank_ ? work.send : input(rank);
    }
    reduce::Reduce(work.reduction, inputs_, work.receive, work.bytes / work.element, work.stores);
    taken = (ranks_ - 1) * work.bytes;
  } else if (absl::Status same = lanes_.CompareUnawaited(); !same.ok()) {
    return same;
  }
  lanes_.ReducedLater(number);
  done_ = number;
  Count(OtherReaders(work) * work.bytes, taken);
  return absl::OkStatus();
}

absl::Status Group::InChunks(const Work& work) {
  const size_t chunks = (work.bytes + work.chunk - 1) / work.chunk;
  for (size_t step = 0; step < chunks + 2; ++step) {
    if (step < chunks) {
      if (absl::Status status = Fill(work, step); !status.ok()) return status;
    }
    if (step >= 1 && step - 1 < chunks) {
      if (absl::Status status = ReducePart(work, step - 1); !status.ok()) return status;
    }
    if (step >= 2 && work.receive != nullptr) {
      if (absl::Status status = Drain(work, step - 2); !status.ok()) return status;
    }
  }
  done_ = Number(chunks - 1);
  return absl::OkStatus();
}

size_t Group::ChunkSize(const Work& work, size_t index) {
  return std::min(work.chunk, work.bytes - index * work.chunk);
}

size_t Group::OtherReaders(const Work& work) {
  return work.receive != nullptr ? work.readers - 1 : work.readers;
}

Group::Part Group::Mine(size_t chunk_bytes) const {
  const size_t part = RoundUp((chunk_bytes + ranks_ - 1) / ranks_, kLine);
  const size_t begin = std::min(chunk_bytes, rank_ * part);
  return {begin, std::min(chunk_bytes, begin + part)};
}

absl::Status Group::Fill(const Work& work, size_t index) {
  const int64_t number = Number(index);
  if (absl::Status free = AwaitPlace(number, false, work.patience); !free.ok()) return free;
  // The part that this rank reduces itself is read from the input.
  const size_t size = ChunkSize(work, index);
  const Part mine = Mine(size);
  const std::byte* from = work.send + index * work.chunk;
  std::byte* cell = Cell(rank_, number);
  reduce::Copy(from, cell, mine.begin, reduce::Stores::kNormal);
  reduce::Copy(from + mine.end, cell + mine.end, size - mine.end, reduce::Stores::kNormal);
  lanes_.Advance(Progress::kFilled, number);
  Count(size - (mine.end - mine.begin), 0);
  return absl::OkStatus();
}

absl::Status Group::ReducePart(const Work& work, size_t index) {
  const int64_t number = Number(index);
  // A rank that has filled this chunk has drained the one whose result cell this one takes.
  if (absl::Status filled = lanes_.AwaitAll(Progress::kFilled, number, work.patience);
      !filled.ok()) {
    return filled;
  }
  const Part mine = Mine(ChunkSize(work, index));
  const size_t offset = index * work.chunk + mine.begin;
  const size_t size = mine.end - mine.begin;
  for (size_t rank = 0; rank < ranks_; ++rank) {
    inputs_[rank] = rank == rank_ ? work.send + offset : Cell(rank, number) + mine.begin;
  }
  std::byte* result = Result(number) + mine.begin;
  const bool wanted = work.receive != nullptr;
  if (wanted && work.chunk > kTogether) {
    reduce::Reduce(work.reduction, inputs_, work.receive + offset, size / work.element, work.stores,
                   {{&result, 1}, reduce::Stores::kNormal});
    lanes_.Advance(Progress::kReduced, number);
  } else {
    reduce::Reduce(work.reduction, inputs_, result, size / work.element, reduce::Stores::kNormal);
    lanes_.Advance(Progress::kReduced, number);
    if (wanted) reduce::Copy(result, work.receive + offset, size, work.stores);
  }
  Count(OtherReaders(work) * size, (ranks_ - 1) * size);
  return absl::OkStatus();
}

absl::Status Group::Drain(const Work& work, size_t index) {
  const int64_t number = Number(index);
  if (absl::Status reduced = lanes_.AwaitAll(Progress::kReduced, number, work.patience);
      !reduced.ok()) {
    return reduced;
  }
  const size_t size = ChunkSize(work, index);
  const Part mine = Mine(size);
  std::byte* to = work.receive + index * work.chunk;
  const std::byte* result = Result(number);
  reduce::Copy(result, to, mine.begin, work.stores);
  reduce::Copy(result + mine.end, to + mine.end, size - mine.end, work.stores);
  Count(0, size - (mine.end - mine.begin));
  return absl::OkStatus();
}

}  // namespace railhead::shm
