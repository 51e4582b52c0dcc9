// SPDX-License-Identifier: Apache-2.0
//
// The sizes at which something inside a collective changes, as the code itself has them: its
// constants, or where the functions that decide give another answer.
#ifndef RAILHEAD_RUNTIME_TESTING_BOUNDARIES_H_
#define RAILHEAD_RUNTIME_TESTING_BOUNDARIES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/parts.h"
#include "runtime/collectives/algorithms.h"
#include "runtime/collectives/collective.h"
#include "runtime/collectives/leaders.h"
#include "runtime/collectives/timetable.h"
#include "runtime/comm/hierarchy/hierarchy.h"
#include "runtime/rails/chunk.h"
#include "runtime/rails/send_ledger.h"
#include "runtime/rails/unexpected_queue.h"
#include "runtime/shm/lanes.h"
#include "runtime/shm/limits.h"
#include "runtime/shm/mailbox.h"
#include "runtime/shm/stores.h"
#include "runtime/transport/tcp/tcp_wire.h"

namespace railhead::testing {

using collectives::Algorithm;
using collectives::Collective;

// The last size before something is done otherwise, in bytes of what a caller gives as the count.
struct Boundary {
  std::string name;
  size_t bytes = 0;
};

// How a collective is done.
struct Way {
  Collective collective = Collective::kAllReduce;
  Algorithm algorithm = Algorithm::kSharedMemory;
  Algorithm column = Algorithm::kRing;  // if hierarchical: among places
  int ranks = 1;
  int local_ranks = 1;  // if hierarchical: in a place
  size_t rails = 1;
  size_t max_payload = transport::TcpWire::kMaxPayload;  // of a frame on them
};

// The largest size for which `after` is not true yet; it stays true once it is.
template <class After>
size_t LastBefore(After after) {
  size_t before = 0;
  for (size_t step = size_t{1} << 40U; step > 0; step /= 2) {
    if (!after(before + step)) before += step;
  }
  return before;
}

// Bytes that a collective in shared memory reads and writes before it goes past the caches.
inline size_t LastCached() {
  return LastBefore(
      [](size_t bytes) { return shm::StoresFor(bytes) == reduce::Stores::kStreaming; });
}

// Of messages through mailboxes.
inline std::vector<Boundary> OfMail(size_t ranks) {
  return {{"slot", shm::Mailbox::SlotBytes(ranks)},
          {"all slots", shm::Mailbox::kSlots * shm::Mailbox::SlotBytes(ranks)}};
}

// In bytes of a part, where there are parts.
inline std::vector<Boundary> InSharedMemory(Collective collective, size_t ranks) {
  switch (collective) {
    case Collective::kAllReduce:
    case Collective::kReduce: {
      const size_t readers = collective == Collective::kAllReduce ? ranks : 1;
      // Half a message is a chunk, unless that is too large.
      return {{"in a lane", shm::Lanes::kInlined},
              {"at once", shm::kAtOnce},
              {"together", 2 * shm::kTogether},
              {"chunk", 2 * shm::kLargestChunk},
              {"all cells", shm::kCells * shm::kLargestChunk},
              {"cache", LastCached() / (ranks + readers)}};
    }
    case Collective::kAllGather:
      return {{"in a lane", shm::Lanes::kInlined},
              {"chunk", shm::kLargestChunk},
              {"all cells", shm::kCells * shm::kLargestChunk},
              {"cache", LastCached() / (ranks * (ranks + 1))}};
    case Collective::kReduceScatter:
      return {{"in a lane", shm::Lanes::kInlined / ranks},
              {"slice", shm::SliceBytes(ranks)},
              {"all cells", shm::kCells * shm::SliceBytes(ranks)},
              {"cache", LastCached() / (ranks * (ranks + 1))}};
    case Collective::kBroadcast:
      return {{"in a lane", shm::Lanes::kInlined},
              {"chunk", shm::kLargestChunk},
              {"all cells", shm::kCells * shm::kLargestChunk},
              {"cache", LastCached() / (ranks + 1)}};
    case Collective::kAllToAll: {
      // Listed parts are messages.
      std::vector<Boundary> boundaries = OfMail(ranks);
      boundaries.push_back({"in a lane", shm::Lanes::kInlined / ranks});
      boundaries.push_back({"slice", shm::SliceBytes(ranks)});
      boundaries.push_back({"all cells", shm::kCells * shm::SliceBytes(ranks)});
      boundaries.push_back({"cache", LastCached() / (2 * ranks * ranks)});
      return boundaries;
    }
    case Collective::kGather:
      return {{"in a lane", shm::Lanes::kInlined},
              {"chunk", shm::kLargestChunk},
              {"all cells", shm::kCells * shm::kLargestChunk},
              {"cache", LastCached() / (2 * ranks)}};
    case Collective::kScatter:
      return {{"in a lane", shm::Lanes::kInlined / ranks},
              {"slice", shm::SliceBytes(ranks)},
              {"all cells", shm::kCells * shm::SliceBytes(ranks)},
              {"cache", LastCached() / (2 * ranks)}};
    default:
      return {};
  }
}

// Of a message over rails.
inline std::vector<Boundary> OfMessages(const Way& way) {
  const auto chunk = [&](size_t bytes) {
    return rails::ChunkSize(bytes, way.rails, way.max_payload);
  };
  const size_t whole = LastBefore([&](size_t bytes) { return chunk(bytes) < bytes; });
  const size_t longest = chunk(size_t{1} << 40U);
  std::vector<Boundary> boundaries = {{"copied", rails::kCopied}, {"whole", whole}};
  if (chunk(whole + 1) == longest) return boundaries;  // as with one rail
  boundaries.push_back({"growing chunks", LastBefore([&](size_t bytes) {
                          return bytes > whole && chunk(bytes) > chunk(whole + 1);
                        })});
  boundaries.push_back({"longest chunks", LastBefore([&](size_t bytes) {
                          return bytes > whole && chunk(bytes) >= longest;
                        })});
  return boundaries;
}

// Of what goes around a ring in parts, in bytes of a part.
inline std::vector<Boundary> OfParts(const Way& way) {
  const auto ranks = static_cast<size_t>(way.ranks);
  const bool bounded = way.collective == Collective::kReduceScatter;
  const auto timetable = [&](size_t part) {
    return collectives::Timetable(
        {.parts = Parts(ranks, ranks * part),
         .steps = ranks - 1,
         .largest_segment = bounded ? collectives::kLargestReduceScatterSegment : SIZE_MAX});
  };
  const size_t one = LastBefore([&](size_t part) { return timetable(part).segments() > 1; });
  std::vector<Boundary> boundaries = {{"one segment", one},
                                      {"growing segments", LastBefore([&](size_t part) {
                                         return timetable(part).segment_size() > one;
                                       })}};
  if (bounded) {
    boundaries.push_back({"one round", LastBefore([&](size_t part) {
                            return timetable(part).total() >
                                   (ranks - 1) * collectives::kMostSegments;
                          })});
  }
  return boundaries;
}

// Of what goes from one end to the other.
inline std::vector<Boundary> OfTrains() {
  const auto train = [](size_t bytes) { return collectives::Train(bytes); };
  const size_t one = LastBefore([&](size_t bytes) { return train(bytes).size() > 1; });
  return {{"one segment", one},
          {"growing segments",
           LastBefore([&](size_t bytes) { return train(bytes).segment_size() > one; })},
          {"many segments", LastBefore([&](size_t bytes) {
             return train(bytes).size() > collectives::kMostSegments;
           })}};
}

inline std::vector<Boundary> Times(size_t factor, std::vector<Boundary> boundaries) {
  for (Boundary& boundary : boundaries) boundary.bytes *= factor;
  return boundaries;
}

inline std::vector<Boundary> OverRails(const Way& way) {
  if (way.ranks == 1) return {};
  switch (way.algorithm) {
    case Algorithm::kRing:
      if (way.collective == Collective::kAllReduce) {
        return Times(static_cast<size_t>(way.ranks), OfParts(way));
      }
      return way.collective == Collective::kBroadcast || way.collective == Collective::kReduce
                 ? OfTrains()
                 : OfParts(way);
    case Algorithm::kDoubleTree:
      return Times(2, OfTrains());
    case Algorithm::kHalvingDoubling:
      return Times(2, OfMessages(way));
    default:
      return OfMessages(way);
  }
}

// In several places that share memory.
inline std::vector<Boundary> InPlaces(const Way& way) {
  const auto local = static_cast<size_t>(way.local_ranks);
  Way column = way;
  column.algorithm = way.column;
  column.ranks = way.ranks / way.local_ranks;
  std::vector<Boundary> boundaries;
  const auto add = [&](const char* where, size_t factor, const std::vector<Boundary>& more) {
    for (const Boundary& boundary : more) {
      boundaries.push_back({absl::StrCat(where, boundary.name), factor * boundary.bytes});
    }
  };
  if (way.collective == Collective::kAllGather || way.collective == Collective::kReduceScatter) {
    add("in memory: ", 1, InSharedMemory(way.collective, local));
    add("in columns: ", 1, OverRails(column));
    return boundaries;
  }
  for (size_t leaders = 1; leaders < local; ++leaders) {
    boundaries.push_back({absl::StrCat(leaders, " leaders"), LastBefore([&](size_t bytes) {
                            return collectives::Leaders(bytes, local) > leaders;
                          })});
  }
  add("in memory: ", 1, InSharedMemory(Collective::kBroadcast, local));
  add("in columns: ", local, OverRails(column));
  boundaries.push_back({"piece", local * comm::kPiece});
  return boundaries;
}

inline std::vector<Boundary> BoundariesOf(const Way& way, bool shared_memory) {
  if (way.collective == Collective::kBarrier) return {};
  if (way.algorithm == Algorithm::kHierarchical) return InPlaces(way);
  if (!shared_memory) {
    std::vector<Boundary> boundaries = OverRails(way);
    // A rank that is a leaf in both trees may run ahead of all others, here as far as it can.
    if (way.algorithm == Algorithm::kDoubleTree) {
      boundaries.push_back({"far ahead", 16 * rails::kRoom});
    }
    return boundaries;
  }
  const auto ranks = static_cast<size_t>(way.ranks);
  return way.algorithm == Algorithm::kSharedMemory ? InSharedMemory(way.collective, ranks)
                                                   : OfMail(ranks);
}

}  // namespace railhead::testing

#endif  // RAILHEAD_RUNTIME_TESTING_BOUNDARIES_H_
