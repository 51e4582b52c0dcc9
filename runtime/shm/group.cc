// SPDX-License-Identifier: Apache-2.0
#include "runtime/shm/group.h"

#include <new>
#include <tuple>

#include "absl/time/time.h"
#include "runtime/base/round_up.h"
#include "runtime/shm/limits.h"

namespace railhead::shm {
namespace {

// A lane of zeros is a lane at its beginning.
absl::Span<Lane> LanesIn(std::byte* memory, size_t ranks) {
  return absl::MakeSpan(std::launder(reinterpret_cast<Lane*>(memory)), ranks);
}

std::vector<Spread::Core*> CoresIn(absl::Span<Lane> lanes) {
  std::vector<Spread::Core*> cores;
  cores.reserve(lanes.size());
  for (Lane& lane : lanes) cores.push_back(&lane.core);
  return cores;
}

size_t LaneBytes(size_t ranks) { return RoundUp(ranks * sizeof(Lane), kPage); }

}  // namespace

size_t Group::Bytes(int ranks) {
  const auto count = static_cast<size_t>(ranks);
  return LaneBytes(count) + (count + 1) * kCells * kLargestChunk;
}

Group::Group(std::byte* memory, int rank, int ranks)
    : memory_(memory),
      rank_(static_cast<size_t>(rank)),
      ranks_(static_cast<size_t>(ranks)),
      lanes_(LanesIn(memory, ranks_), rank),
      spread_(CoresIn(LanesIn(memory, ranks_)), rank_),
      inputs_(ranks_),
      outputs_(ranks_) {}

std::byte* Group::Cell(size_t rank, int64_t number) const {
  const size_t place = static_cast<size_t>(number) % kCells;
  return memory_ + LaneBytes(ranks_) + (rank * kCells + place) * kLargestChunk;
}

std::byte* Group::Result(int64_t number) const { return Cell(ranks_, number); }

void Group::Count(size_t given, size_t taken) {
  // This thread alone writes them.
  given_.store(given_.load(std::memory_order_relaxed) + given, std::memory_order_relaxed);
  taken_.store(taken_.load(std::memory_order_relaxed) + taken, std::memory_order_relaxed);
}

absl::Status Group::Run(const collectives::Operation& operation, const Patience& patience) {
  using collectives::Collective;
  const auto& [reduction, send, receive, count, root] = std::tie(
      operation.reduction, operation.send, operation.receive, operation.count, operation.root);
  switch (operation.collective) {
    case Collective::kAllReduce:
      return AllReduce(reduction, send, receive, count, patience);
    case Collective::kAllGather:
      return AllGather(send, receive, operation.receive_parts, patience);
    case Collective::kReduceScatter:
      return ReduceScatter(reduction, send, receive, operation.send_parts, patience);
    case Collective::kBroadcast:
      return Broadcast(send, receive, count, root, patience);
    case Collective::kReduce:
      return Reduce(reduction, send, receive, count, root, patience);
    case Collective::kBarrier:
      return Barrier(patience);
    case Collective::kAllToAll:
      return AllToAll(send, receive, operation.send_parts.largest(), patience);
    case Collective::kGather:
      return Gather(send, receive, count, root, patience);
    case Collective::kScatter:
      return Scatter(send, receive, count, root, patience);
    case Collective::kSendReceive:
      break;
  }
  return absl::InternalError("sends and receives are not a collective in shared memory");
}

}  // namespace railhead::shm
