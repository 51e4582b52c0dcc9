// SPDX-License-Identifier: Apache-2.0
#include "runtime/shm/group.h"

#include <algorithm>
#include <array>
#include <new>

#include "absl/time/time.h"

namespace railhead::shm {
namespace {

constexpr size_t kLine = 64;
constexpr size_t kPage = 4096;
// A chunk is filled while the one before is reduced and the one before that drained.
constexpr size_t kDepth = 3;
// Large enough that a chunk's work is long compared with telling of it.
constexpr size_t kLargestChunk = size_t{512} << 10U;
// Three chunks of input, and results, stay in a core's second cache.
constexpr size_t kChunk = size_t{256} << 10U;
// Less is reduced by everybody: reducing all of it takes less time than telling once more.
constexpr size_t kAtOnce = size_t{8} << 10U;
// From here on outputs go past the caches.
constexpr size_t kStream = size_t{4} << 20U;

size_t RoundUp(size_t value, size_t unit) { return (value + unit - 1) / unit * unit; }

size_t LaneBytes(size_t ranks) { return RoundUp(ranks * sizeof(Lane), kPage); }

}  // namespace

size_t Group::Bytes(int ranks) {
  const auto count = static_cast<size_t>(ranks);
  return LaneBytes(count) + (count + 1) * kDepth * kLargestChunk;
}

Group::Group(std::byte* memory, int rank, int ranks, bool crowded)
    : memory_(memory),
      rank_(static_cast<size_t>(rank)),
      ranks_(static_cast<size_t>(ranks)),
      crowded_(crowded),
      // A lane of zeros is a lane at its beginning.
      lanes_(absl::MakeSpan(std::launder(reinterpret_cast<Lane*>(memory)), ranks_), rank),
      inputs_(ranks_) {}

std::byte* Group::Cell(size_t rank, uint32_t number) const {
  return memory_ + LaneBytes(ranks_) + (rank * kDepth + number % kDepth) * kLargestChunk;
}

std::byte* Group::Result(uint32_t number) const { return Cell(ranks_, number); }

absl::Duration Group::Look() const {
  return crowded_ ? absl::ZeroDuration() : absl::Microseconds(20);
}

absl::Status Group::AllReduce(const reduce::Reduction& reduction, const std::byte* send,
                              std::byte* receive, size_t count, const Patience& patience) {
  if (count == 0) return absl::OkStatus();
  const size_t element = reduce::SizeOf(reduction.type);
  const size_t bytes = count * element;
  // Ranks that share cores change places at every wait: fewer, longer chunks.
  const size_t chunk = crowded_ ? kLargestChunk : kChunk;
  const Work work = {reduction,
                     send,
                     receive,
                     element,
                     bytes,
                     std::min(chunk, RoundUp((bytes + 1) / 2, kLine)),
                     bytes >= kStream ? reduce::Stores::kStreaming : reduce::Stores::kNormal,
                     patience};
  return bytes <= kAtOnce ? AtOnce(work) : InChunks(work);
}

absl::Status Group::AtOnce(const Work& work) {
  const uint32_t number = Number(0);
  // Whoever still read this cell has gone on since.
  if (absl::Status free = lanes_.AwaitAll(&Lane::reduced, number - kDepth, work.patience);
      !free.ok()) {
    return free;
  }
  reduce::Copy(work.send, Cell(rank_, number), work.bytes, reduce::Stores::kNormal);
  lanes_.Advance(&Lane::filled, number);
  if (absl::Status filled = lanes_.AwaitAll(&Lane::filled, number, work.patience); !filled.ok()) {
    return filled;
  }
  for (size_t rank = 0; rank < ranks_; ++rank) {
    inputs_[rank] = rank == rank_ ? work.send : Cell(rank, number);
  }
  reduce::Reduce(work.reduction, inputs_, work.receive, work.bytes / work.element, work.stores);
  lanes_.Advance(&Lane::reduced, number);
  done_ = number;
  Count((ranks_ - 1) * work.bytes, (ranks_ - 1) * work.bytes);
  return absl::OkStatus();
}

void Group::Count(size_t given, size_t taken) {
  // This thread alone writes them.
  given_.store(given_.load(std::memory_order_relaxed) + given, std::memory_order_relaxed);
  taken_.store(taken_.load(std::memory_order_relaxed) + taken, std::memory_order_relaxed);
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
    if (step >= 2) {
      if (absl::Status status = Drain(work, step - 2); !status.ok()) return status;
    }
  }
  done_ = Number(chunks - 1);
  return absl::OkStatus();
}

size_t Group::ChunkSize(const Work& work, size_t index) const {
  return std::min(work.chunk, work.bytes - index * work.chunk);
}

Group::Part Group::Mine(size_t chunk_bytes) const {
  const size_t part = RoundUp((chunk_bytes + ranks_ - 1) / ranks_, kLine);
  const size_t begin = std::min(chunk_bytes, rank_ * part);
  return {begin, std::min(chunk_bytes, begin + part)};
}

absl::Status Group::Fill(const Work& work, size_t index) {
  const uint32_t number = Number(index);
  if (absl::Status free = lanes_.AwaitAll(&Lane::reduced, number - kDepth, work.patience);
      !free.ok()) {
    return free;
  }
  // What this rank reduces itself it reads where it is.
  const size_t size = ChunkSize(work, index);
  const Part mine = Mine(size);
  const std::byte* from = work.send + index * work.chunk;
  std::byte* cell = Cell(rank_, number);
  reduce::Copy(from, cell, mine.begin, reduce::Stores::kNormal);
  reduce::Copy(from + mine.end, cell + mine.end, size - mine.end, reduce::Stores::kNormal);
  lanes_.Advance(&Lane::filled, number);
  Count(size - (mine.end - mine.begin), 0);
  return absl::OkStatus();
}

absl::Status Group::ReducePart(const Work& work, size_t index) {
  const uint32_t number = Number(index);
  // Who has filled this chunk has drained the one whose result cell this one takes.
  if (absl::Status filled = lanes_.AwaitAll(&Lane::filled, number, work.patience); !filled.ok()) {
    return filled;
  }
  const Part mine = Mine(ChunkSize(work, index));
  const size_t offset = index * work.chunk + mine.begin;
  const size_t size = mine.end - mine.begin;
  for (size_t rank = 0; rank < ranks_; ++rank) {
    inputs_[rank] = rank == rank_ ? work.send + offset : Cell(rank, number) + mine.begin;
  }
  std::byte* result = Result(number) + mine.begin;
  reduce::Reduce(work.reduction, inputs_, result, size / work.element, reduce::Stores::kNormal);
  lanes_.Advance(&Lane::reduced, number);
  reduce::Copy(result, work.receive + offset, size, work.stores);
  Count((ranks_ - 1) * size, (ranks_ - 1) * size);
  return absl::OkStatus();
}

absl::Status Group::Drain(const Work& work, size_t index) {
  const uint32_t number = Number(index);
  if (absl::Status reduced = lanes_.AwaitAll(&Lane::reduced, number, work.patience);
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
