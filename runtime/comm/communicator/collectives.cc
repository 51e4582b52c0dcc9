// SPDX-License-Identifier: Apache-2.0
//
// Collectives of a communicator. Each function states what the ranks must agree on, and the
// implementations: in memory shared by all ranks, hierarchical over places, or over messages.
#include <algorithm>
#include <mutex>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/base/parts.h"
#include "runtime/collectives/call.h"
#include "runtime/collectives/collective.h"
#include "runtime/collectives/messenger.h"
#include "runtime/collectives/point_to_point.h"
#include "runtime/collectives/ways.h"
#include "runtime/comm/communicator/communicator.h"
#include "runtime/comm/hierarchy/hierarchy.h"
#include "runtime/recorder/position.h"
#include "runtime/reduce/reduce.h"
#include "runtime/shm/group.h"

namespace railhead::comm {

using collectives::Algorithm;
using collectives::AllGatherFunction;
using collectives::AllReduceFunction;
using collectives::AllToAllFunction;
using collectives::Collective;
using collectives::Messenger;
using collectives::ReduceFunction;
using collectives::ReduceScatterFunction;
using collectives::RootedFunction;

absl::Status Communicator::AllReduce(rhDataType_t type, rhRedOp_t op, const std::byte* send,
                                     std::byte* receive, size_t count) {
  const reduce::Reduction reduction = {type, op, world_size_, {}};
  const Work work =
      Choose({.collective = Collective::kAllReduce, .type = type, .op = op, .count = count},
             count * reduce::SizeOf(type));
  return Run(
      work,
      [&](shm::Group& group, const shm::Patience& patience) {
        return group.AllReduce(reduction, send, receive, count, patience);
      },
      [&](Hierarchy& hierarchy) {
        return hierarchy.AllReduce(work.call, AmongPlaces<AllReduceFunction>(work), reduction, send,
                                   receive, count);
      },
      [&](Messenger& messenger) {
        return AmongAll<AllReduceFunction>(work)(messenger, rank_, world_size_, reduction, send,
                                                 receive, count);
      });
}

absl::Status Communicator::AllGather(const std::byte* send, std::byte* receive,
                                     const Parts& parts) {
  const Work work = Choose({.collective = Collective::kAllGather,
                            .count = parts.total(),
                            .parts = collectives::DigestOf(parts)},
                           parts.total());
  return Run(
      work,
      [&](shm::Group& group, const shm::Patience& patience) {
        return group.AllGather(send, receive, parts, patience);
      },
      [&](Hierarchy& hierarchy) {
        return hierarchy.AllGather(work.call, AmongPlaces<AllGatherFunction>(work), send, receive,
                                   parts);
      },
      [&](Messenger& messenger) {
        return AmongAll<AllGatherFunction>(work)(messenger, rank_, world_size_, send, receive,
                                                 parts);
      });
}

absl::Status Communicator::ReduceScatter(rhDataType_t type, rhRedOp_t op, const std::byte* send,
                                         std::byte* receive, const Parts& parts) {
  const reduce::Reduction reduction = {type, op, world_size_, {}};
  const Work work = Choose({.collective = Collective::kReduceScatter,
                            .type = type,
                            .op = op,
                            .count = parts.total(),
                            .parts = collectives::DigestOf(parts)},
                           parts.total() * reduce::SizeOf(type));
  return Run(
      work,
      [&](shm::Group& group, const shm::Patience& patience) {
        return group.ReduceScatter(reduction, send, receive, parts, patience);
      },
      [&](Hierarchy& hierarchy) {
        return hierarchy.ReduceScatter(work.call, AmongPlaces<ReduceScatterFunction>(work),
                                       reduction, send, receive, parts);
      },
      [&](Messenger& messenger) {
        return AmongAll<ReduceScatterFunction>(work)(messenger, rank_, world_size_, reduction, send,
                                                     receive, parts);
      });
}

absl::Status Communicator::Broadcast(const std::byte* send, std::byte* receive, size_t bytes,
                                     int root) {
  const Work work =
      Choose({.collective = Collective::kBroadcast, .root = root, .count = bytes}, bytes);
  return Run(
      work,
      [&](shm::Group& group, const shm::Patience& patience) {
        return group.Broadcast(send, receive, bytes, root, patience);
      },
      [&](Hierarchy& hierarchy) {
        return hierarchy.Broadcast(work.call, AmongPlaces<RootedFunction>(work), send, receive,
                                   bytes, root);
      },
      [&](Messenger& messenger) {
        return AmongAll<RootedFunction>(work)(messenger, rank_, world_size_, root, send, receive,
                                              bytes);
      });
}

absl::Status Communicator::Reduce(rhDataType_t type, rhRedOp_t op, const std::byte* send,
                                  std::byte* receive, size_t count, int root) {
  const reduce::Reduction reduction = {type, op, world_size_, {}};
  const Work work = Choose(
      {.collective = Collective::kReduce, .type = type, .op = op, .root = root, .count = count},
      count * reduce::SizeOf(type));
  return Run(
      work,
      [&](shm::Group& group, const shm::Patience& patience) {
        return group.Reduce(reduction, send, receive, count, root, patience);
      },
      [&](Messenger& messenger) {
        return AmongAll<ReduceFunction>(work)(messenger, rank_, world_size_, root, reduction, send,
                                              receive, count);
      });
}

absl::Status Communicator::Barrier() {
  const Work work = Choose({.collective = Collective::kBarrier}, 0);
  // Over rails, a barrier is an all-reduce: its result exists only after all ranks have called.
  std::byte token{1};
  const reduce::Reduction reduction = {rhUint8, rhMax, 1, {}};
  return Run(
      work,
      [](shm::Group& group, const shm::Patience& patience) { return group.Barrier(patience); },
      [&](Hierarchy& hierarchy) {
        return hierarchy.AllReduce(work.call, AmongPlaces<AllReduceFunction>(work), reduction,
                                   &token, &token, 1);
      },
      [&](Messenger& messenger) {
        return AmongAll<AllReduceFunction>(work)(messenger, rank_, world_size_, reduction, &token,
                                                 &token, 1);
      });
}

absl::Status Communicator::AllToAll(const std::byte* send, const Parts& send_parts,
                                    std::byte* receive, const Parts& receive_parts) {
  // With listed parts, only the two ranks of a pair agree on a size; the algorithm is always
  // pairwise.
  const bool equal = send_parts.equal() && receive_parts.equal();
  const size_t bytes = std::max(send_parts.total(), receive_parts.total());
  const collectives::Call::Arguments arguments = {.collective = Collective::kAllToAll,
                                                  .count = equal ? bytes : 0,
                                                  .number = recorder_.collectives()};
  const Work work = equal ? Choose(arguments, bytes)
                          : Work{Collective::kAllToAll, Algorithm::kPairwise, bytes,
                                 collectives::Call(arguments)};
  const auto over_messages = [&](Messenger& messenger) {
    return AmongAll<AllToAllFunction>(work)(messenger, rank_, send, send_parts, receive,
                                            receive_parts);
  };
  if (!equal) return Run(work, over_messages);
  return Run(
      work,
      [&](shm::Group& group, const shm::Patience& patience) {
        return group.AllToAll(send, receive, send_parts.largest(), patience);
      },
      over_messages);
}

absl::Status Communicator::Gather(const std::byte* send, std::byte* receive, size_t bytes,
                                  int root) {
  const Work work =
      Choose({.collective = Collective::kGather, .root = root, .count = bytes}, Ranks() * bytes);
  return Run(
      work,
      [&](shm::Group& group, const shm::Patience& patience) {
        return group.Gather(send, receive, bytes, root, patience);
      },
      [&](Messenger& messenger) {
        return AmongAll<RootedFunction>(work)(messenger, rank_, world_size_, root, send, receive,
                                              bytes);
      });
}

absl::Status Communicator::Scatter(const std::byte* send, std::byte* receive, size_t bytes,
                                   int root) {
  const Work work =
      Choose({.collective = Collective::kScatter, .root = root, .count = bytes}, Ranks() * bytes);
  return Run(
      work,
      [&](shm::Group& group, const shm::Patience& patience) {
        return group.Scatter(send, receive, bytes, root, patience);
      },
      [&](Messenger& messenger) {
        return AmongAll<RootedFunction>(work)(messenger, rank_, world_size_, root, send, receive,
                                              bytes);
      });
}

absl::Status Communicator::Transfer(absl::Span<const collectives::Transfer> transfers) {
  size_t bytes = 0;
  for (const collectives::Transfer& transfer : transfers) bytes += transfer.bytes;
  const collectives::Call call({.collective = Collective::kSendReceive});
  {
    const std::lock_guard<std::mutex> lock(awaiting_);
    awaited_.clear();
    for (const collectives::Transfer& transfer : transfers) {
      if (awaited_.size() < recorder::kMostAwaited) awaited_.push_back(transfer.peer);
    }
  }
  return Run(
      {Collective::kSendReceive, Algorithm::kDirect, bytes, call},
      [&](Messenger& messenger) { return collectives::RunTransfers(messenger, rank_, transfers); });
}

}  // namespace railhead::comm
