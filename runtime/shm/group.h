// SPDX-License-Identifier: Apache-2.0
//
// Collectives between ranks that share memory.
//
// The memory holds a lane for each rank (lanes.h), some cells for each rank's input, and some for
// results. Messages go through them in chunks that stay in the caches, and stages of successive
// chunks overlap; so memory itself sees each input read once and each output written once. Each
// collective is a text of its own (all_reduce.cc, ...) about who copies and reduces what; common to
// all is what follows.
//
// Inputs meet in the order of ranks, in one call of reduce::Reduce, whatever the way: all ranks get
// the same bits, and 16- and 8-bit floats are rounded once.
//
// Chunks are numbered from 1 over the life of the group, the same on all ranks and whatever
// collective they belong to. Every rank says two things of every chunk k:
//
// - filled k: what others want of me for chunk k is in my cell, and I have drained every result up
//   to k-3.
// - reduced k: I read no cell of chunk k any more, and my part of its result, if there is one, is
//   in the result cell.
//
// Chunk k has the place of chunk k-3, so
//
// - a rank writes its cell for chunk k when all have reduced k-3, and
// - a rank writes into the result cell of chunk k when all have filled k.
//
// That holds for every succession of collectives, so there is no barrier between them.
//
// Buffers that all ranks can reach (window.h) need none of that: see direct.cc.
#ifndef RAILHEAD_RUNTIME_SHM_GROUP_H_
#define RAILHEAD_RUNTIME_SHM_GROUP_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "runtime/base/parts.h"
#include "runtime/collectives/call.h"
#include "runtime/reduce/reduce.h"
#include "runtime/shm/lanes.h"
#include "runtime/shm/window.h"

namespace railhead::shm {

// One rank's place in a group. Used by one thread at a time.
class Group {
 public:
  // How much memory a group needs. It is zero before the first rank's Group begins.
  static size_t Bytes(int ranks);

  // `memory` is the same memory for all ranks (at whatever address), aligned to a page, and
  // outlives this.
  Group(std::byte* memory, int rank, int ranks);

  // What the next collective is called with, and with how many bytes, if it is known. All ranks'
  // calls are compared, also of those that do not wait for each other: of two that contradict each
  // other, the one that comes later gets Internal at once, before it has a byte of the other's.
  void Expect(collectives::Call call, size_t bytes = 0) { lanes_.Expect(Number(0), call, bytes); }

  // The collectives of the C API, which says what they do. All ranks call the same ones in the same
  // order, with the same reduction, count (of values), bytes and root. Buffers are in place as the
  // C API has it, or do not overlap. After an error the group is of no more use, and neither are
  // the contents of `receive`.
  absl::Status AllReduce(const reduce::Reduction& reduction, const std::byte* send,
                         std::byte* receive, size_t count, const Patience& patience);
  // `parts` of bytes.
  absl::Status AllGather(const std::byte* send, std::byte* receive, const Parts& parts,
                         const Patience& patience);
  // `parts` of values.
  absl::Status ReduceScatter(const reduce::Reduction& reduction, const std::byte* send,
                             std::byte* receive, const Parts& parts, const Patience& patience);
  // `send` is used by the root only.
  absl::Status Broadcast(const std::byte* send, std::byte* receive, size_t bytes, int root,
                         const Patience& patience);
  // `receive` is used by the root only.
  absl::Status Reduce(const reduce::Reduction& reduction, const std::byte* send, std::byte* receive,
                      size_t count, int root, const Patience& patience);
  absl::Status Barrier(const Patience& patience);
  // Of a collective that is done in another way: says what this rank calls.
  absl::Status Announce(const Patience& patience);

  // Between the same collectives on all ranks: from now on, buffers that all ranks have in windows
  // are worked on where they lie. The window's number is the same on all ranks.
  size_t Open(Window window);
  void Close(size_t window);

  // Bytes that this rank has laid out for others, and that it has read of theirs: each part once
  // for each rank that reads it. Any thread.
  uint64_t given_bytes() const { return given_.load(std::memory_order_relaxed); }
  uint64_t taken_bytes() const { return taken_.load(std::memory_order_relaxed); }

  // For Patience::spread.
  Spread& spread() { return spread_; }

  // How long it pays to look before sleeping.
  static absl::Duration Look() { return absl::Microseconds(50); }

 private:
  // A chunk is filled while the one before is reduced and the one before that drained.
  static constexpr size_t kDepth = kMostAhead;

  // One input alone is copied.
  static constexpr reduce::Reduction kBytes = {rhUint8, rhBor, 1, {}};

  // A range of bytes of a chunk.
  struct Part {
    size_t begin = 0;
    size_t end = 0;
  };
  // How much of `whole` a slice holds that begins at `offset`.
  static size_t SliceOf(size_t whole, size_t offset, size_t slice) {
    return offset < whole ? std::min(slice, whole - offset) : 0;
  }
  // One all-reduce or reduce.
  struct Work {
    const reduce::Reduction& reduction;
    const std::byte* send;
    std::byte* receive;  // null on a rank that does not get the result
    size_t readers;      // how many ranks get it
    size_t element;      // bytes
    size_t bytes;
    size_t chunk;  // bytes, a multiple of a cache line and of an element
    reduce::Stores stores;
    const Patience& patience;
  };

  // direct.cc
  // Ranks meet: on true, `inputs_` and `outputs_` are all ranks' buffers, and Depart() is to
  // follow. Buffers that do not matter are empty; the larger one has the same size on all ranks.
  absl::StatusOr<bool> Meet(absl::Span<const std::byte> send, absl::Span<std::byte> receive,
                            const Patience& patience);
  // Reduces `count` values of `from` into all of `outputs_`, offsets in bytes.
  void Directly(const reduce::Reduction& reduction, absl::Span<const std::byte* const> from,
                size_t from_offset, size_t to_offset, size_t count, reduce::Stores stores);
  absl::Status ReduceDirectly(const Work& work);
  // Waits until all have done their part.
  absl::Status Depart(const Patience& patience);

  // all_reduce.cc
  absl::Status ReduceFor(size_t readers, const reduce::Reduction& reduction, const std::byte* send,
                         std::byte* receive, size_t count, const Patience& patience);
  absl::Status AtOnce(const Work& work);
  absl::Status InChunks(const Work& work);
  absl::Status Fill(const Work& work, size_t index);
  absl::Status ReducePart(const Work& work, size_t index);
  absl::Status Drain(const Work& work, size_t index);
  static size_t ChunkSize(const Work& work, size_t index);
  static size_t OtherReaders(const Work& work);
  // The part of a chunk that this rank reduces.
  Part Mine(size_t chunk_bytes) const;

  void Count(size_t given, size_t taken);
  int64_t Number(size_t index) const { return done_ + static_cast<int64_t>(index) + 1; }
  // Waits until this rank may write its cell for a chunk.
  absl::Status AwaitCell(int64_t number, const Patience& patience) {
    return lanes_.AwaitAll(Progress::kReduced, number - static_cast<int64_t>(kDepth), patience);
  }
  // After a call's chunk is filled that not all ranks wait for.
  absl::Status CompareIfFirst(size_t index) {
    return index == 0 ? lanes_.CompareWithThoseHere() : absl::OkStatus();
  }
  std::byte* Cell(size_t rank, int64_t number) const;
  std::byte* Result(int64_t number) const;

  std::byte* const memory_;
  const size_t rank_;
  const size_t ranks_;
  Lanes lanes_;
  Spread spread_;
  int64_t done_ = 0;  // chunks of earlier collectives
  std::vector<const std::byte*> inputs_;
  std::vector<Window> windows_;  // those that are closed are empty
  std::vector<std::byte*> outputs_;
  // What Directly() passes on.
  std::vector<const std::byte*> addresses_;
  std::vector<std::byte*> copies_;
  std::atomic<uint64_t> given_{0};
  std::atomic<uint64_t> taken_{0};
};

}  // namespace railhead::shm

#endif  // RAILHEAD_RUNTIME_SHM_GROUP_H_
