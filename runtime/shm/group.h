// SPDX-License-Identifier: Apache-2.0
//
// Collectives between ranks that share memory.
//
// The memory has a lane per rank (lanes.h), cells for each rank's input, and cells for results.
// Data passes in chunks that stay in caches, and stages of successive chunks overlap; so each input
// is read from memory once and each output written once. Each collective (all_reduce.cc, ...)
// defines who copies and reduces what, on these common rules.
//
// Inputs are reduced in rank order in one call of reduce::Reduce, by any path: all ranks get
// identical bits, and 16- and 8-bit floats are rounded once.
//
// Chunks are numbered from 1 over the life of the group, the same on all ranks for all collectives.
// Every rank publishes two facts about every chunk k:
//
// - filled k: this rank's data for chunk k is in its cell, or in the notice itself, and it has
//   drained every result up to k-3.
// - reduced k: it no longer reads cells of chunk k, and its part of the result, if any, is in the
//   result cell.
//
// Chunk k uses the cells of chunk k-3, and the notices of chunk k-64, so
//
// - a rank writes its cell for chunk k when all have reduced k-3,
// - a rank writes into the result cell of chunk k when all have filled k, and
// - a rank with data in its notice of chunk k writes it when all have reduced k-63.
//
// A rank without data fills at once: it has finished k-1, so all have reduced k-64.
//
// These rules hold for every sequence of collectives, so there is no barrier between them.
//
// Buffers that all ranks can access (window.h) bypass this: see direct.cc.
#ifndef RAILHEAD_RUNTIME_SHM_GROUP_H_
#define RAILHEAD_RUNTIME_SHM_GROUP_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "runtime/base/parts.h"
#include "runtime/collectives/call.h"
#include "runtime/collectives/operation.h"
#include "runtime/reduce/reduce.h"
#include "runtime/shm/lanes.h"
#include "runtime/shm/limits.h"
#include "runtime/shm/window.h"

namespace railhead::shm {

// One rank's view of a group. Use from one thread at a time.
class Group {
 public:
  // Returns the bytes of memory needed, zero before the first rank's Group is created.
  static size_t Bytes(int ranks);

  // `memory` is the same memory for all ranks (at any address), page aligned, and must outlive
  // this.
  Group(std::byte* memory, int rank, int ranks);

  // Announces the next collective's call and its bytes, if known. Ranks compare it with the calls
  // of the ranks that they wait for, before they read their bytes; ranks that wait for no other,
  // with each other. So at least one rank gets Internal if calls contradict.
  void Expect(collectives::Call call, size_t bytes = 0) { lanes_.Expect(Number(0), call, bytes); }

  // Collectives of the C API, documented there. All ranks call the same ones in the same order,
  // with the same reduction, count (of values), bytes and root. Buffers are in place as in the C
  // API, or do not overlap. After an error the group cannot be used, and the contents of `receive`
  // are undefined.
  absl::Status AllReduce(const reduce::Reduction& reduction, const std::byte* send,
                         std::byte* receive, size_t count, const Patience& patience);
  // `parts` are in bytes.
  absl::Status AllGather(const std::byte* send, std::byte* receive, const Parts& parts,
                         const Patience& patience);
  // `parts` are in values.
  absl::Status ReduceScatter(const reduce::Reduction& reduction, const std::byte* send,
                             std::byte* receive, const Parts& parts, const Patience& patience);
  // `send` is used on the root only.
  absl::Status Broadcast(const std::byte* send, std::byte* receive, size_t bytes, int root,
                         const Patience& patience);
  // `receive` is used on the root only.
  absl::Status Reduce(const reduce::Reduction& reduction, const std::byte* send, std::byte* receive,
                      size_t count, int root, const Patience& patience);
  // `block`: bytes that each rank gives each, the same on all ranks.
  absl::Status AllToAll(const std::byte* send, std::byte* receive, size_t block,
                        const Patience& patience);
  // `receive` is used on the root only.
  absl::Status Gather(const std::byte* send, std::byte* receive, size_t block, int root,
                      const Patience& patience);
  // `send` is used on the root only.
  absl::Status Scatter(const std::byte* send, std::byte* receive, size_t block, int root,
                       const Patience& patience);
  absl::Status Barrier(const Patience& patience);
  // Announces the call of a collective that runs without this group.
  absl::Status Announce(const Patience& patience);

  // Does this rank's part of an operation of any collective but sends and receives, and an
  // all-to-all of listed parts.
  absl::Status Run(const collectives::Operation& operation, const Patience& patience);

  // Opens a window, on all ranks between the same collectives: buffers that all ranks have in
  // windows are then accessed in place. The window's number is the same on all ranks.
  size_t Open(Window window);
  void Close(size_t window);

  // Bytes that this rank provided to others, and read from them: each part counts once per reader.
  // Thread-safe.
  uint64_t given_bytes() const { return given_.load(std::memory_order_relaxed); }
  uint64_t taken_bytes() const { return taken_.load(std::memory_order_relaxed); }

  // Call after a failed collective, before the caller may use its buffers: no rank that is late in
  // this call can change them afterwards, nor be wrong without an error. An error: it still can.
  absl::Status Withdraw();

  // For the wait policy's `spread`.
  Spread& spread() { return spread_; }

  // Spin time before sleeping.
  static absl::Duration Look() { return absl::Microseconds(50); }

 private:
  // Copies a single input.
  static constexpr reduce::Reduction kBytes = {rhUint8, rhBor, 1, {}};

  // A range of bytes of a chunk.
  struct Part {
    size_t begin = 0;
    size_t end = 0;
    size_t size() const { return end - begin; }
  };
  // Returns the bytes of a slice of `whole` at `offset`.
  static size_t SliceOf(size_t whole, size_t offset, size_t slice) {
    return offset < whole ? std::min(slice, whole - offset) : 0;
  }
  // One all-reduce or reduce.
  struct Work {
    const reduce::Reduction& reduction;
    const std::byte* send;
    std::byte* receive;  // null on ranks that do not get the result
    size_t readers;      // number of ranks that get it
    size_t element;      // bytes
    size_t bytes;
    size_t chunk;  // bytes, a multiple of a cache line and of an element
    reduce::Stores stores;
    const Patience& patience;
  };

  // direct.cc
  // Synchronizes ranks: on true, `inputs_` and `outputs_` are all ranks' buffers, and Depart() must
  // follow. Buffers that others do not use are empty; `largest`: bytes of the largest one of all
  // ranks, and of each output.
  absl::StatusOr<bool> Meet(absl::Span<const std::byte> send, absl::Span<std::byte> receive,
                            size_t largest, const Patience& patience);
  // Returns the bytes of outputs that others may write: whole pages of each, and whole values.
  Part Inside(size_t bytes, size_t element) const;
  // Reduces `count` values of `from` into all of `outputs_`, offsets in bytes.
  void Directly(const reduce::Reduction& reduction, absl::Span<const std::byte* const> from,
                size_t from_offset, size_t to_offset, size_t count, reduce::Stores stores);
  absl::Status ReduceDirectly(const Work& work);
  // Puts this rank's part into all outputs, and what others may not write into its own.
  void GatherDirectly(const Parts& parts, std::byte* receive, reduce::Stores stores);
  // Waits until all have finished their part. An error if data may have changed meanwhile.
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
  // Returns the part of a chunk that this rank reduces.
  Part Mine(size_t chunk_bytes) const;

  void Count(size_t given, size_t taken);
  int64_t Number(size_t index) const { return done_ + static_cast<int64_t>(index) + 1; }
  // Waits until this rank may write its data for a chunk: into its cell, or along with its notice.
  absl::Status AwaitPlace(int64_t number, bool inlined, const Patience& patience) {
    const int64_t places = inlined ? kMostAhead : static_cast<int64_t>(kCells);
    return lanes_.AwaitAll(Progress::kReduced, number - places, patience);
  }
  // Call after a chunk is filled, in a call in which this rank waits for no other.
  absl::Status CompareIfFirst(size_t index) {
    return index == 0 ? lanes_.CompareUnawaited() : absl::OkStatus();
  }
  std::byte* Cell(size_t rank, int64_t number) const;
  // Returns a rank's data for a chunk: in its cell, or along with its notice.
  std::byte* DataOf(size_t rank, int64_t number, bool inlined) const {
    return inlined ? lanes_.Inlined(rank, number) : Cell(rank, number);
  }
  // Publishes that this rank no longer reads cells of a chunk; of a small call, with its next one,
  // which spares it a store that waits for others.
  void Reduced(int64_t number, bool later) {
    if (later) {
      lanes_.ReducedLater(number);
    } else {
      lanes_.Advance(Progress::kReduced, number);
    }
  }
  std::byte* Result(int64_t number) const;

  std::byte* const memory_;
  const size_t rank_;
  const size_t ranks_;
  Lanes lanes_;
  Spread spread_;
  int64_t done_ = 0;  // chunks of earlier collectives
  std::vector<const std::byte*> inputs_;
  std::vector<Window> windows_;  // closed ones are empty
  std::vector<std::byte*> outputs_;
  // This rank's output, while others may write to it, and its segment.
  absl::Span<const std::byte> exposed_;
  std::shared_ptr<const Segment> exposed_segment_;
  std::vector<std::byte> ends_;  // results of the bytes that no other rank may write
  // Arguments that Directly() passes on.
  std::vector<const std::byte*> addresses_;
  std::vector<std::byte*> copies_;
  std::atomic<uint64_t> given_{0};
  std::atomic<uint64_t> taken_{0};
};

}  // namespace railhead::shm

#endif  // RAILHEAD_RUNTIME_SHM_GROUP_H_
