// SPDX-License-Identifier: Apache-2.0
//
// A collective call of one rank, as a value. The C API fills it in; argument checks, staging, the
// fingerprint, the recorder, metrics and the tuner read it, and so does each implementation:
// shared memory (shm/group.h), the hierarchy (comm/hierarchy/hierarchy.h), and the algorithms over
// messages (algorithms.h).
#ifndef RAILHEAD_RUNTIME_COLLECTIVES_OPERATION_H_
#define RAILHEAD_RUNTIME_COLLECTIVES_OPERATION_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "runtime/base/parts.h"
#include "runtime/collectives/call.h"
#include "runtime/collectives/collective.h"
#include "runtime/reduce/reduce.h"

namespace railhead::collectives {

// Content of a rank's buffer: nothing, one block, or one block for each rank.
enum class Share : uint8_t { kNone, kOne, kEach };

// The buffers of a collective. In place, the smaller buffer is this rank's block of the larger
// one, and two equal buffers are the same.
struct Shape {
  Share send = Share::kNone;
  Share receive = Share::kNone;
  // Only the root uses the buffer.
  bool root_sends = false;
  bool root_receives = false;

  // Returns the number of blocks that a rank sends, or receives; 0: it does not use the buffer.
  size_t SendBlocks(size_t ranks, bool is_root) const {
    return root_sends && !is_root ? 0 : Blocks(send, ranks);
  }
  size_t ReceiveBlocks(size_t ranks, bool is_root) const {
    return root_receives && !is_root ? 0 : Blocks(receive, ranks);
  }

 private:
  static size_t Blocks(Share share, size_t ranks) {
    return share == Share::kEach ? ranks : static_cast<size_t>(share);
  }
};

// By Collective; one row per collective. Sends and receives have buffers of their own.
inline constexpr std::array<Shape, kCollectiveNames.size()> kShapes = {{
    {Share::kOne, Share::kOne},                // all-reduce
    {Share::kOne, Share::kEach},               // all-gather
    {Share::kEach, Share::kOne},               // reduce-scatter
    {Share::kOne, Share::kOne, true, false},   // broadcast
    {Share::kOne, Share::kOne, false, true},   // reduce
    {},                                        // barrier
    {Share::kEach, Share::kEach},              // all-to-all
    {Share::kOne, Share::kEach, false, true},  // gather
    {Share::kEach, Share::kOne, true, false},  // scatter
    {},                                        // send and receive
}};
inline const Shape& ShapeOf(Collective collective) {
  return kShapes[static_cast<size_t>(collective)];
}

// Returns true for collectives whose blocks may differ from rank to rank.
inline bool UsesParts(Collective collective) {
  return collective == Collective::kAllGather || collective == Collective::kReduceScatter ||
         collective == Collective::kAllToAll;
}

struct Operation {
  Collective collective = Collective::kBarrier;
  int ranks = 1;
  int root = 0;                      // if HasRoot
  reduce::Reduction reduction = {};  // if Reduces
  // This rank's buffers, as in the C API: in place, or apart. Null if it does not use one.
  const std::byte* send = nullptr;
  std::byte* receive = nullptr;
  // One block: values if the collective reduces, otherwise bytes. Not if it UsesParts.
  size_t count = 0;
  // By rank, in the same units: reduce-scatter has parts to send, all-gather to receive, and
  // all-to-all both. They refer to lists of the caller, if listed.
  Parts send_parts = {};
  Parts receive_parts = {};

  // Bytes of a value.
  size_t element() const { return Reduces(collective) ? reduce::SizeOf(reduction.type) : 1; }
};

// Returns the bytes of the larger of a rank's two buffers, as in metrics; equal on all ranks, but
// for an all-to-all of listed parts.
size_t BytesOf(const Operation& operation);

// Returns true for an all-to-all of listed parts, where only the two ranks of a pair agree on a
// size. All else is the same on all ranks, so they may choose an algorithm by it.
inline bool IsUneven(const Operation& operation) {
  return operation.collective == Collective::kAllToAll &&
         !(operation.send_parts.equal() && operation.receive_parts.equal());
}

// Returns the barrier as what it is over messages: an all-reduce of a byte, whose result exists
// only after all ranks have called. `token` must outlive the result.
inline Operation BarrierAsAllReduce(Operation barrier, std::byte* token) {
  barrier.reduction = {rhUint8, rhMax, 1, {}};
  barrier.send = barrier.receive = token;
  barrier.count = 1;
  return barrier;
}

// Returns the fingerprint; `number`: see Call::Arguments.
Call CallOf(const Operation& operation, uint64_t number);

}  // namespace railhead::collectives

#endif  // RAILHEAD_RUNTIME_COLLECTIVES_OPERATION_H_
