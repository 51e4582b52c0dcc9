// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/hierarchy.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/collectives/leaders.h"
#include "runtime/collectives/reducing.h"

namespace railhead::comm {

using collectives::AllGatherFunction;
using collectives::AllReduceFunction;
using collectives::Call;
using collectives::Messenger;
using collectives::ReduceScatterFunction;
using collectives::RootedFunction;

Hierarchy::Hierarchy(Options options, Patient& mesh)
    : places_(std::move(options.places)),
      self_(PositionOf(options.rank)),
      group_(options.memory, static_cast<int>(self_.column), local_ranks()),
      board_(options.memory + shm::Group::Bytes(local_ranks()), static_cast<int>(self_.column),
             here()),
      patience_(options.patience),
      mesh_(mesh),
      column_(mesh, [this] {
        std::vector<int> ranks;
        ranks.reserve(places_.size());
        for (const std::vector<int>& place : places_) ranks.push_back(place[self_.column]);
        return ranks;
      }()) {
  patience_.look = group_.Look();
  patience_.crowded = options.crowded;
}

Hierarchy::Position Hierarchy::PositionOf(int rank) const {
  for (size_t place = 0; place < places_.size(); ++place) {
    const auto at = std::lower_bound(places_[place].begin(), places_[place].end(), rank);
    if (at == places_[place].end() || *at != rank) continue;
    return {place, static_cast<size_t>(at - places_[place].begin())};
  }
  return {};
}

absl::Status Hierarchy::AllReduce(Call call, AllReduceFunction columns,
                                  const reduce::Reduction& reduction, const std::byte* send,
                                  std::byte* receive, size_t count) {
  const size_t element = reduce::SizeOf(reduction.type);
  const size_t piece = here().size() * (kPiece / element);
  for (size_t begin = 0; begin < count; begin += piece) {
    absl::Status done = AllReducePiece(call, columns, reduction, send + begin * element,
                                       receive + begin * element, std::min(piece, count - begin));
    if (!done.ok()) return done;
  }
  return absl::OkStatus();
}

absl::Status Hierarchy::AllReducePiece(Call call, AllReduceFunction columns,
                                       const reduce::Reduction& reduction, const std::byte* send,
                                       std::byte* receive, size_t count) {
  const size_t element = reduce::SizeOf(reduction.type);
  ListLeaders(count, element);
  const Range mine = list_.Of(1)[self_.column];
  std::byte* const own = receive + mine.begin * element;
  absl::Status done = InMemory(call, [&](shm::Group& group, const shm::Patience& patience) {
    return group.ReduceScatter(collectives::Partial(reduction), send, own, list_.Of(1), patience);
  });
  if (!done.ok()) return done;
  if (mine.size > 0) {
    done = OverRails(call, [&](Messenger& column, int rank, int ranks) {
      return columns(column, rank, ranks, reduction, own, own, mine.size);
    });
    if (!done.ok()) return done;
  }
  return InMemory(call, [&](shm::Group& group, const shm::Patience& patience) {
    return group.AllGather(own, receive, list_.Of(element), patience);
  });
}

absl::Status Hierarchy::ReduceScatter(Call call, ReduceScatterFunction columns,
                                      const reduce::Reduction& reduction, const std::byte* send,
                                      std::byte* receive, const Parts& parts) {
  const size_t element = reduce::SizeOf(reduction.type);
  // What this place has of each part of the column, one after the other.
  PartList column_parts;
  size_t values = 0;
  for (const std::vector<int>& place : places_) {
    const size_t size = parts[static_cast<size_t>(place[self_.column])].size;
    column_parts.Add({values, size});
    values += size;
  }
  const auto reduced = std::make_unique_for_overwrite<std::byte[]>(values * element);
  for (size_t place = 0; place < places_.size(); ++place) {
    ListPlace(parts, place);
    absl::Status done = InMemory(call, [&](shm::Group& group, const shm::Patience& patience) {
      return group.ReduceScatter(collectives::Partial(reduction), send,
                                 reduced.get() + column_parts.Of(1)[place].begin * element,
                                 list_.Of(1), patience);
    });
    if (!done.ok()) return done;
  }
  return OverRails(call, [&](Messenger& column, int rank, int ranks) {
    return columns(column, rank, ranks, reduction, reduced.get(), receive, column_parts.Of(1));
  });
}

absl::Status Hierarchy::AllGather(Call call, AllGatherFunction columns, const std::byte* send,
                                  std::byte* receive, const Parts& parts) {
  list_.Clear();
  for (const std::vector<int>& place : places_) {
    list_.Add(parts[static_cast<size_t>(place[self_.column])]);
  }
  absl::Status done = OverRails(call, [&](Messenger& column, int rank, int ranks) {
    return columns(column, rank, ranks, send, receive, list_.Of(1));
  });
  for (size_t place = 0; place < places_.size() && done.ok(); ++place) {
    ListPlace(parts, place);
    const std::byte* const own = receive + list_.Of(1)[self_.column].begin;
    done = InMemory(call, [&](shm::Group& group, const shm::Patience& patience) {
      return group.AllGather(own, receive, list_.Of(1), patience);
    });
  }
  return done;
}

absl::Status Hierarchy::Broadcast(Call call, RootedFunction columns, const std::byte* send,
                                  std::byte* receive, size_t bytes, int root) {
  const Position from = PositionOf(root);
  const size_t piece = here().size() * kPiece;
  for (size_t begin = 0; begin < bytes; begin += piece) {
    absl::Status done = BroadcastPiece(call, columns, send == nullptr ? nullptr : send + begin,
                                       receive + begin, std::min(piece, bytes - begin), from);
    if (!done.ok()) return done;
  }
  return absl::OkStatus();
}

absl::Status Hierarchy::BroadcastPiece(Call call, RootedFunction columns, const std::byte* send,
                                       std::byte* receive, size_t bytes, const Position& root) {
  const bool at_root = root.place == self_.place;
  if (at_root) {
    absl::Status done = InMemory(call, [&](shm::Group& group, const shm::Patience& patience) {
      return group.Broadcast(send, receive, bytes, static_cast<int>(root.column), patience);
    });
    if (!done.ok()) return done;
  }
  ListLeaders(bytes, 1);
  const Range mine = list_.Of(1)[self_.column];
  std::byte* const own = receive + mine.begin;
  if (mine.size > 0) {
    absl::Status done = OverRails(call, [&](Messenger& column, int rank, int ranks) {
      return columns(column, rank, ranks, static_cast<int>(root.place), own, own, mine.size);
    });
    if (!done.ok()) return done;
  }
  if (at_root) return absl::OkStatus();
  return InMemory(call, [&](shm::Group& group, const shm::Patience& patience) {
    return group.AllGather(own, receive, list_.Of(1), patience);
  });
}

void Hierarchy::PartList::Clear() {
  sizes_.clear();
  begins_.clear();
}

void Hierarchy::PartList::Add(const Range& range) {
  sizes_.push_back(range.size);
  begins_.push_back(range.begin);
}

void Hierarchy::ListLeaders(size_t count, size_t element) {
  const Parts parts(collectives::Leaders(count * element, here().size()), count);
  list_.Clear();
  for (size_t i = 0; i < here().size(); ++i) {
    list_.Add(i < parts.ranks() ? parts[i] : Range{count, 0});
  }
}

void Hierarchy::ListPlace(const Parts& parts, size_t place) {
  list_.Clear();
  for (const int rank : places_[place]) list_.Add(parts[static_cast<size_t>(rank)]);
}

absl::Status Hierarchy::InMemory(
    Call call,
    absl::FunctionRef<absl::Status(shm::Group& group, const shm::Patience& patience)> run) {
  group_.Expect(call);
  absl::Status done = run(group_, patience_);
  if (done.ok() || absl::IsCancelled(done)) return done;
  return absl::Status(done.code(),
                      absl::StrCat("among the ranks ", absl::StrJoin(here(), ", "),
                                   ", counted from 0 in their memory: ", done.message()));
}

absl::Status Hierarchy::OverRails(
    Call call, absl::FunctionRef<absl::Status(Messenger& column, int rank, int ranks)> run) {
  mesh_.Begin(patience_.limit);
  column_.Expect(call);
  absl::Status done = run(column_, static_cast<int>(self_.place), static_cast<int>(places_.size()));
  return done.ok() ? mesh_.Finish() : done;
}

}  // namespace railhead::comm
