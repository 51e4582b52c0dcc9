// SPDX-License-Identifier: Apache-2.0
//
// Collectives between ranks that share memory.
//
// The memory holds a lane for each rank (lanes.h), some cells for each rank's input, and some for
// results. Large messages go through them in chunks that stay in the caches, in three stages that
// overlap: fill (copy my input of chunk k+1 into my cell), reduce (my part of chunk k, of all
// ranks' inputs at once, into a result cell), and drain (copy the parts that the others have
// reduced of chunk k-1). So memory itself sees each input read once and each output written once.
// Small messages take one stage: everybody fills, and reduces everything for itself.
//
// Inputs meet in the order of ranks, in one call of reduce::Reduce, whatever the way: all ranks get
// the same bits, and 16- and 8-bit floats are rounded once.
#ifndef RAILHEAD_RUNTIME_SHM_GROUP_H_
#define RAILHEAD_RUNTIME_SHM_GROUP_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/reduce/reduce.h"
#include "runtime/shm/lanes.h"

namespace railhead::shm {

// One rank's place in a group. Used by one thread at a time.
class Group {
 public:
  // How much memory a group needs. It is zero before the first rank's Group begins.
  static size_t Bytes(int ranks);

  // `memory` is the same memory for all ranks (at whatever address), aligned to a page, and
  // outlives this. `crowded`, the same on all ranks: there are more ranks than cores.
  Group(std::byte* memory, int rank, int ranks, bool crowded);

  // What NCCL calls all-reduce: `receive` gets the reduction of all ranks' `send`, `count` elements
  // each. They are the same or do not overlap. All ranks call it with the same reduction and count.
  // After an error the group is of no more use, and neither are the contents of `receive`.
  absl::Status AllReduce(const reduce::Reduction& reduction, const std::byte* send,
                         std::byte* receive, size_t count, const Patience& patience);

  // Bytes that this rank has laid out for others, and that it has read of theirs: each part once
  // for each rank that reads it. Any thread.
  uint64_t given_bytes() const { return given_.load(std::memory_order_relaxed); }
  uint64_t taken_bytes() const { return taken_.load(std::memory_order_relaxed); }

  // How long it pays to look before sleeping.
  absl::Duration Look() const;

 private:
  // A range of bytes of a chunk.
  struct Part {
    size_t begin = 0;
    size_t end = 0;
  };
  // One all-reduce.
  struct Work {
    const reduce::Reduction& reduction;
    const std::byte* send;
    std::byte* receive;
    size_t element;  // bytes
    size_t bytes;
    size_t chunk;  // bytes, a multiple of a cache line and of an element
    reduce::Stores stores;
    const Patience& patience;
  };

  absl::Status AtOnce(const Work& work);
  absl::Status InChunks(const Work& work);
  absl::Status Fill(const Work& work, size_t index);
  absl::Status ReducePart(const Work& work, size_t index);
  absl::Status Drain(const Work& work, size_t index);

  void Count(size_t given, size_t taken);
  size_t ChunkSize(const Work& work, size_t index) const;
  // The part of a chunk that this rank reduces.
  Part Mine(size_t chunk_bytes) const;
  uint32_t Number(size_t index) const { return done_ + static_cast<uint32_t>(index) + 1; }
  std::byte* Cell(size_t rank, uint32_t number) const;
  std::byte* Result(uint32_t number) const;

  std::byte* const memory_;
  const size_t rank_;
  const size_t ranks_;
  const bool crowded_;
  Lanes lanes_;
  uint32_t done_ = 0;  // chunks of earlier collectives
  std::vector<const std::byte*> inputs_;
  std::atomic<uint64_t> given_{0};
  std::atomic<uint64_t> taken_{0};
};

}  // namespace railhead::shm

#endif  // RAILHEAD_RUNTIME_SHM_GROUP_H_
