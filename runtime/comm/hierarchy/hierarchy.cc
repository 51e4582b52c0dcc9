// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/hierarchy/hierarchy.h"

#include <algorithm>
#include <memory>
#include <new>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "runtime/base/now.h"
#include "runtime/collectives/leaders.h"
#include "runtime/collectives/reducing.h"

namespace railhead::comm {

using collectives::Call;
using collectives::Collective;
using collectives::Operation;
using collectives::Transfer;

namespace {

using Places = std::vector<std::vector<int>>;

bool BySize(const std::vector<int>& a, const std::vector<int>& b) { return a.size() < b.size(); }

size_t Smallest(const Places& places) {
  return std::min_element(places.begin(), places.end(), BySize)->size();
}

size_t Largest(const Places& places) {
  return std::max_element(places.begin(), places.end(), BySize)->size();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Hierarchy>> Hierarchy::Create(Options options, Patient& messages) {
  const int world_size = std::accumulate(
      options.places.begin(), options.places.end(), 0,
      [](int sum, const auto& place) { return sum + static_cast<int>(place.size()); });
  std::unique_ptr<Hierarchy> hierarchy(new Hierarchy(std::move(options), messages));
  // A rank that is alone in its place exchanges no messages there.
  if (hierarchy->here().size() < 2) return hierarchy;
  absl::Status ready = messages.UseMemory(hierarchy->mailbox_, hierarchy->here(), world_size);
  if (!ready.ok()) return ready;
  return hierarchy;
}

Hierarchy::Hierarchy(Options options, Patient& messages)
    : places_(std::move(options.places)),
      columns_(Smallest(places_)),
      rounds_(Largest(places_) - columns_ + 1),
      rank_(options.rank),
      self_(PositionOf(options.rank)),
      group_(options.memory, static_cast<int>(self_.number), LocalRanks()),
      mailbox_(options.memory + shm::Group::Bytes(LocalRanks()), static_cast<int>(self_.number),
               here()),
      checker_(options.memory + shm::Group::Bytes(LocalRanks()) + shm::Mailbox::Bytes(LocalRanks()),
               static_cast<int>(self_.number), here()),
      // Zeroed memory is a valid initial Sign.
      signs_(std::launder(reinterpret_cast<Sign*>(options.memory + Bytes(LocalRanks()) -
                                                  here().size() * sizeof(Sign))),
             here().size()),
      waits_for_callers_(options.patience.go_on),
      go_on_([this] {
        return MovesHere() || (waits_for_callers_ != nullptr && (*waits_for_callers_)());
      }),
      patience_(options.patience),
      messages_(messages),
      column_(messages, [this] {
        std::vector<int> ranks;
        if (!Leads()) return ranks;
        ranks.reserve(places_.size());
        for (const std::vector<int>& place : places_) ranks.push_back(place[self_.number]);
        return ranks;
      }()) {
  patience_.look = group_.Look();
  patience_.crowded = options.crowded;
  patience_.go_on = &go_on_;
  patience_.spread = &group_.spread();
  messages_.Note(&signs_[self_.number].last_moved);
}

Hierarchy::Position Hierarchy::PositionOf(int rank) const {
  for (size_t place = 0; place < places_.size(); ++place) {
    const auto at = std::lower_bound(places_[place].begin(), places_[place].end(), rank);
    if (at == places_[place].end() || *at != rank) continue;
    return {place, static_cast<size_t>(at - places_[place].begin())};
  }
  return {};
}

bool Hierarchy::MovesHere() const {
  // A rank that has made no progress yet has the time 0.
  const int64_t since = std::max<int64_t>(absl::ToUnixNanos(MonotonicNow() - patience_.limit), 0);
  for (size_t number = 0; number < signs_.size(); ++number) {
    if (number == self_.number) continue;
    if (signs_[number].last_moved.load(std::memory_order_relaxed) > since) return true;
  }
  return false;
}

absl::Status Hierarchy::Run(const Operation& operation, Call call,
                            collectives::AlgorithmFunction& columns) {
  const Work work = {operation, call, columns};
  switch (operation.collective) {
    case Collective::kAllReduce:
    case Collective::kBarrier:
      return AllReduce(work);
    case Collective::kReduceScatter:
      return ReduceScatter(work);
    case Collective::kAllGather:
      return AllGather(work);
    case Collective::kBroadcast:
      return Broadcast(work);
    default:
      return absl::InternalError(
          absl::StrCat("the hierarchy does not perform ", Name(operation.collective)));
  }
}

absl::Status Hierarchy::InColumn(const Work& work, Operation part) {
  // Ranks of a column are numbered like their places.
  part.ranks = place_count();
  return work.columns(column_, static_cast<int>(self_.place), part);
}

absl::Status Hierarchy::AllReduce(const Work& work) {
  const size_t count = work.operation.count;
  const size_t piece = columns_ * (kPiece / reduce::SizeOf(work.operation.reduction.type));
  for (size_t begin = 0; begin < count; begin += piece) {
    absl::Status done = AllReducePiece(work, begin, std::min(piece, count - begin));
    if (!done.ok()) return done;
  }
  return absl::OkStatus();
}

absl::Status Hierarchy::AllReducePiece(const Work& work, size_t begin, size_t count) {
  const reduce::Reduction& reduction = work.operation.reduction;
  const size_t element = reduce::SizeOf(reduction.type);
  const std::byte* const send = work.operation.send + begin * element;
  std::byte* const receive = work.operation.receive + begin * element;
  const size_t leaders = ListLeaders(count, element);
  const Range mine = list_.Of(1)[self_.number];
  std::byte* const own = receive + mine.begin * element;
  const reduce::Reduction partial = collectives::Partial(reduction);
  absl::Status done = InMemory(work.call, [&](shm::Group& group, const shm::Patience& patience) {
    // With a single leader, all ranks of the place reduce a part for it.
    if (leaders == 1) return group.Reduce(partial, send, receive, count, 0, patience);
    return group.ReduceScatter(partial, send, own, list_.Of(1), patience);
  });
  if (!done.ok()) return done;
  if (mine.size > 0) {
    Operation part = work.operation;
    part.send = part.receive = own;
    part.count = mine.size;
    done = OverRails(work.call, [&] { return InColumn(work, part); });
    if (!done.ok()) return done;
  }
  return InMemory(work.call, [&](shm::Group& group, const shm::Patience& patience) {
    if (leaders == 1) return group.Broadcast(receive, receive, count * element, 0, patience);
    return group.AllGather(own, receive, list_.Of(element), patience);
  });
}

absl::Status Hierarchy::ReduceScatter(const Work& work) {
  const reduce::Reduction& reduction = work.operation.reduction;
  const std::byte* const send = work.operation.send;
  std::byte* const receive = work.operation.receive;
  const Parts& parts = work.operation.send_parts;
  const size_t element = reduce::SizeOf(reduction.type);
  // The place's part of each slice of the column, one after the other.
  std::vector<PartList> of_rounds(Leads() ? rounds_ : 0);
  size_t values = 0;
  size_t passed = 0;  // values for ranks of this place without a column
  for (size_t round = 0; round < of_rounds.size(); ++round) {
    for (size_t place = 0; place < places_.size(); ++place) {
      const size_t size = Slice(parts, element, place, round, self_.number).size;
      of_rounds[round].Add({values, size});
      values += size;
      if (round > 0 && place == self_.place) passed += size;
    }
  }
  const auto reduced = std::make_unique_for_overwrite<std::byte[]>((values + passed) * element);
  for (size_t place = 0; place < places_.size(); ++place) {
    for (size_t round = 0; round < Rounds(place); ++round) {
      std::byte* own = nullptr;
      if (Leads()) own = reduced.get() + of_rounds[round].Of(1)[place].begin * element;
      ListSlices(parts, element, place, round);
      absl::Status done =
          InMemory(work.call, [&](shm::Group& group, const shm::Patience& patience) {
            return group.ReduceScatter(collectives::Partial(reduction), send, own, list_.Of(1),
                                       patience);
          });
      if (!done.ok()) return done;
    }
  }
  std::byte* const for_others = reduced.get() + values * element;
  std::byte* to = receive;
  if (Leads()) {
    absl::Status done = OverRails(work.call, [&] {
      Operation part = work.operation;
      part.send = reduced.get();
      for (size_t round = 0; round < rounds_; ++round) {
        part.send_parts = of_rounds[round].Of(1);
        part.receive = to;
        absl::Status scattered = InColumn(work, part);
        if (!scattered.ok()) return scattered;
        to = round == 0 ? for_others : to + part.send_parts[self_.place].size * element;
      }
      return absl::OkStatus();
    });
    if (!done.ok()) return done;
    to = for_others;
  }
  return PassSlices(work.call, parts, element, Transfer::Direction::kSend, [&](const Range& slice) {
    if (!Leads()) {
      const Range own = parts[static_cast<size_t>(rank_)];
      return receive + (slice.begin - own.begin) * element;
    }
    return std::exchange(to, to + slice.size * element);
  });
}

absl::Status Hierarchy::AllGather(const Work& work) {
  const std::byte* const send = work.operation.send;
  std::byte* const receive = work.operation.receive;
  const Parts& parts = work.operation.receive_parts;
  absl::Status done =
      PassSlices(work.call, parts, 1, Transfer::Direction::kReceive, [&](const Range& slice) {
        return Leads() ? receive + slice.begin
                       // Only read.
                       : const_cast<std::byte*>(send) +
                             (slice.begin - parts[static_cast<size_t>(rank_)].begin);
      });
  if (!done.ok()) return done;
  if (Leads()) {
    done = OverRails(work.call, [&] {
      Operation part = work.operation;
      for (size_t round = 0; round < rounds_; ++round) {
        list_.Clear();
        for (size_t place = 0; place < places_.size(); ++place) {
          list_.Add(Slice(parts, 1, place, round, self_.number));
        }
        part.receive_parts = list_.Of(1);
        if (round > 0) part.send = receive + part.receive_parts[self_.place].begin;
        absl::Status gathered = InColumn(work, part);
        if (!gathered.ok()) return gathered;
      }
      return absl::OkStatus();
    });
  }
  for (size_t place = 0; place < places_.size(); ++place) {
    for (size_t round = 0; round < Rounds(place) && done.ok(); ++round) {
      ListSlices(parts, 1, place, round);
      const std::byte* const own = receive + list_.Of(1)[self_.number].begin;
      done = InMemory(work.call, [&](shm::Group& group, const shm::Patience& patience) {
        return group.AllGather(own, receive, list_.Of(1), patience);
      });
    }
  }
  return done;
}

absl::Status Hierarchy::Broadcast(const Work& work) {
  const size_t bytes = work.operation.count;
  const Position root = PositionOf(work.operation.root);
  const size_t piece = columns_ * kPiece;
  for (size_t begin = 0; begin < bytes; begin += piece) {
    absl::Status done = BroadcastPiece(work, begin, std::min(piece, bytes - begin), root);
    if (!done.ok()) return done;
  }
  return absl::OkStatus();
}

absl::Status Hierarchy::BroadcastPiece(const Work& work, size_t begin, size_t count,
                                       const Position& root) {
  std::byte* const receive = work.operation.receive + begin;
  const bool at_root = root.place == self_.place;
  if (at_root) {
    const std::byte* const send =
        work.operation.send == nullptr ? nullptr : work.operation.send + begin;
    absl::Status done = InMemory(work.call, [&](shm::Group& group, const shm::Patience& patience) {
      return group.Broadcast(send, receive, count, static_cast<int>(root.number), patience);
    });
    if (!done.ok()) return done;
  }
  const size_t leaders = ListLeaders(count, 1);
  const Range mine = list_.Of(1)[self_.number];
  std::byte* const own = receive + mine.begin;
  if (mine.size > 0) {
    Operation part = work.operation;
    part.root = static_cast<int>(root.place);
    part.send = part.receive = own;
    part.count = mine.size;
    absl::Status done = OverRails(work.call, [&] { return InColumn(work, part); });
    if (!done.ok()) return done;
  }
  if (at_root) return absl::OkStatus();
  return InMemory(work.call, [&](shm::Group& group, const shm::Patience& patience) {
    if (leaders == 1) return group.Broadcast(receive, receive, count, 0, patience);
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

size_t Hierarchy::ListLeaders(size_t count, size_t element) {
  const Parts parts(collectives::Leaders(count * element, columns_), count);
  list_.Clear();
  for (size_t i = 0; i < here().size(); ++i) {
    list_.Add(i < parts.ranks() ? parts[i] : Range{count, 0});
  }
  return parts.ranks();
}

Range Hierarchy::Slice(const Parts& parts, size_t element, size_t place, size_t round,
                       size_t column) const {
  const std::vector<int>& ranks = places_[place];
  const auto part_of = [&](size_t number) { return parts[static_cast<size_t>(ranks[number])]; };
  if (round == 0) return part_of(column);
  if (round >= Rounds(place)) return {};
  const Range whole = part_of(columns_ + round - 1);
  const Parts slices(collectives::Leaders(whole.size * element, columns_), whole.size);
  if (column >= slices.ranks()) return {};
  return {whole.begin + slices[column].begin, slices[column].size};
}

void Hierarchy::ListSlices(const Parts& parts, size_t element, size_t place, size_t round) {
  list_.Clear();
  for (size_t number = 0; number < here().size(); ++number) {
    list_.Add(number < columns_ ? Slice(parts, element, place, round, number) : Range{});
  }
}

absl::Status Hierarchy::PassSlices(Call call, const Parts& parts, size_t element,
                                   Transfer::Direction of_leaders,
                                   absl::FunctionRef<std::byte*(const Range& slice)> memory) {
  using Direction = Transfer::Direction;
  if (here().size() == columns_) return absl::OkStatus();
  std::vector<Transfer> transfers;
  const auto add = [&](Direction direction, size_t peer, size_t round, size_t column) {
    const Range slice = Slice(parts, element, self_.place, round, column);
    transfers.push_back({direction, here()[peer], memory(slice), slice.size * element});
  };
  if (Leads()) {
    for (size_t other = columns_; other < here().size(); ++other) {
      add(of_leaders, other, other - columns_ + 1, self_.number);
    }
  } else {
    const auto direction = of_leaders == Direction::kSend ? Direction::kReceive : Direction::kSend;
    for (size_t leader = 0; leader < columns_; ++leader) {
      add(direction, leader, self_.number - columns_ + 1, leader);
    }
  }
  return OverRails(call, [&] { return collectives::RunTransfers(messages_, rank_, transfers); });
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

absl::Status Hierarchy::OverRails(Call call, absl::FunctionRef<absl::Status()> run) {
  messages_.Begin(patience_.limit, &go_on_);
  column_.Expect(call);
  absl::Status done = run();
  return done.ok() ? messages_.Finish() : done;
}

}  // namespace railhead::comm
