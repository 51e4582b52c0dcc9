// SPDX-License-Identifier: Apache-2.0
//
// Collectives of ranks that live in several places, in each of which they share memory. What can be
// done inside a place is done in its memory. For the rest ranks form columns, as many as the
// smallest place has ranks: those that have the same number in their places. Each column does its
// part over rails, with an algorithm of its own choice, so every rank of a column leads for a part,
// and its rails carry that part alone. The ranks that a larger place has besides lead nothing.
//
//   all-reduce      reduce-scatter in memory, all-reduce in columns, all-gather in memory
//   reduce-scatter  reduce-scatter in memory, then in columns
//   all-gather      all-gather in columns, then in memory
//   broadcast       in the root's memory, then of a part in each column, all-gather in the others'
//                   memories
//
// Of small messages some ranks lead no part (collectives/leaders.h); with a single leader a reduce
// and a broadcast in memory do what is said above.
//
// In reduce-scatter and all-gather, columns carry parts of ranks. Those of ranks without a column
// are divided among the leaders of their place, and go in one more round for each such rank of the
// largest place. These ranks get their parts from the leaders, or give them to these, in messages.
//
// All ranks of an all-reduce get the same bits, since each part is computed in one column and its
// algorithm gives all of it the same. 16- and 8-bit floats are rounded once for all ranks of a
// place, and then as often as the column's algorithm does for as many ranks as there are places.
//
// Who waits in memory does not look at its rails, so nothing must depend on that: each stage over
// rails ends when all that it sent is on its way. Nor does a rank lose patience with one of its
// place that still sends: every rank notes in memory when something has last moved. And large
// all-reduces and broadcasts are done in pieces, so that columns stay together.
#ifndef RAILHEAD_RUNTIME_COMM_HIERARCHY_HIERARCHY_H_
#define RAILHEAD_RUNTIME_COMM_HIERARCHY_HIERARCHY_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/base/parts.h"
#include "runtime/base/traffic.h"
#include "runtime/collectives/call.h"
#include "runtime/collectives/messenger.h"
#include "runtime/collectives/point_to_point.h"
#include "runtime/collectives/subgroup.h"
#include "runtime/collectives/ways.h"
#include "runtime/comm/hierarchy/patient.h"
#include "runtime/reduce/reduce.h"
#include "runtime/shm/call_checker.h"
#include "runtime/shm/group.h"
#include "runtime/shm/mailbox.h"
#include "runtime/shm/patience.h"

namespace railhead::comm {

// What a rank leads of a piece, in bytes: much longer than it takes to begin one.
inline constexpr size_t kPiece = size_t{4} << 20U;

// One rank's place in it. Used by one thread at a time.
class Hierarchy {
  // In shared memory: when something has last moved for a rank, in nanoseconds of the
  // monotonic clock.
  struct alignas(64) Sign {
    std::atomic<int64_t> last_moved{0};
  };

 public:
  struct Options {
    std::vector<std::vector<int>> places;  // of all ranks, two at least; see Decision
    int rank = 0;
    bool crowded = false;
    std::byte* memory = nullptr;  // of this rank's place
    // How long to wait, in memory and over rails; how to is seen from the rest.
    shm::Patience patience;
  };
  // How much memory a place of so many ranks needs. It is zero before the first of them begins.
  static size_t Bytes(int local_ranks) {
    return shm::Group::Bytes(local_ranks) + shm::Mailbox::Bytes(local_ranks) +
           shm::CallChecker::Bytes(local_ranks) + static_cast<size_t>(local_ranks) * sizeof(Sign);
  }

  // From here on messages between ranks of this place go through its memory as well. The memory
  // outlives this, and this outlives the use of `messages`.
  static absl::StatusOr<std::unique_ptr<Hierarchy>> Create(Options options, Patient& messages);

  // Says what this rank calls next, of all that all ranks call, in whichever way it will be done.
  // Internal if another one of this place contradicts it.
  absl::Status Begin(collectives::Call call) { return checker_.Post(call); }

  // As those of Communicator. `call` says which call they belong to, and `columns` how columns do
  // their part.
  absl::Status AllReduce(collectives::Call call, collectives::AllReduceFunction columns,
                         const reduce::Reduction& reduction, const std::byte* send,
                         std::byte* receive, size_t count);
  absl::Status ReduceScatter(collectives::Call call, collectives::ReduceScatterFunction columns,
                             const reduce::Reduction& reduction, const std::byte* send,
                             std::byte* receive, const Parts& parts);
  absl::Status AllGather(collectives::Call call, collectives::AllGatherFunction columns,
                         const std::byte* send, std::byte* receive, const Parts& parts);
  absl::Status Broadcast(collectives::Call call, collectives::RootedFunction columns,
                         const std::byte* send, std::byte* receive, size_t bytes, int root);

  // The memory of this rank's place, and the ranks that share it in their order there.
  shm::Group& memory() { return group_; }
  const std::vector<int>& here() const { return places_[self_.place]; }
  bool IsHere(int rank) const { return std::binary_search(here().begin(), here().end(), rank); }
  // How many there are; the same on all ranks.
  int place_count() const { return static_cast<int>(places_.size()); }
  int column_count() const { return static_cast<int>(columns_); }
  int round_count() const { return static_cast<int>(rounds_); }
  // Bytes that have gone through the memory between this rank and others. Any thread.
  Traffic Moved() const {
    return {group_.given_bytes() + mailbox_.given_bytes(),
            group_.taken_bytes() + mailbox_.taken_bytes()};
  }

 private:
  // Which values belong to whom, where they are not simply one after the other.
  class PartList {
   public:
    void Clear();
    void Add(const Range& range);
    // In units of so many values.
    Parts Of(size_t unit) const { return Parts(sizes_, begins_, unit); }

   private:
    std::vector<size_t> sizes_;
    std::vector<size_t> begins_;
  };
  // Where a rank stands.
  struct Position {
    size_t place = 0;
    size_t number = 0;  // there; its column, if there is one of this number
  };
  Hierarchy(Options options, Patient& messages);

  Position PositionOf(int rank) const;
  int LocalRanks() const { return static_cast<int>(here().size()); }
  bool Leads() const { return self_.number < columns_; }
  // Whether something has moved for another rank of this place within the patience.
  bool MovesHere() const;

  absl::Status AllReducePiece(collectives::Call call, collectives::AllReduceFunction columns,
                              const reduce::Reduction& reduction, const std::byte* send,
                              std::byte* receive, size_t count);
  absl::Status BroadcastPiece(collectives::Call call, collectives::RootedFunction columns,
                              const std::byte* send, std::byte* receive, size_t bytes,
                              const Position& root);
  // Divides so many values among the leaders of a place, and returns how many these are.
  size_t ListLeaders(size_t count, size_t element);

  // Parts of ranks go over rails in rounds. In round 0 each column carries the parts of its ranks;
  // in the next ones, of a place that has more ranks, those of one of these.
  size_t Rounds(size_t place) const { return places_[place].size() - columns_ + 1; }
  // Which values a column carries of a place in a round. None where the place has fewer.
  Range Slice(const Parts& parts, size_t element, size_t place, size_t round, size_t column) const;
  // Lists what the columns carry of a place in a round, by the ranks of this place.
  void ListSlices(const Parts& parts, size_t element, size_t place, size_t round);
  // What is sent or received between leaders of this place and its ranks without a column: these
  // ranks' parts, slice by slice. `memory` says where a slice is on this rank; it is asked for each
  // once, a leader's in the order of rounds.
  absl::Status PassSlices(collectives::Call call, const Parts& parts, size_t element,
                          collectives::Transfer::Direction of_leaders,
                          absl::FunctionRef<std::byte*(const Range& slice)> memory);

  absl::Status InMemory(
      collectives::Call call,
      absl::FunctionRef<absl::Status(shm::Group& group, const shm::Patience& patience)> run);
  // In a column, whose ranks are numbered as their places.
  absl::Status OverRails(
      collectives::Call call,
      absl::FunctionRef<absl::Status(collectives::Messenger& column, int rank, int ranks)> run);

  const std::vector<std::vector<int>> places_;
  const size_t columns_;
  const size_t rounds_;  // of the largest place
  const int rank_;
  const Position self_;
  shm::Group group_;
  shm::Mailbox mailbox_;
  shm::CallChecker checker_;
  const absl::Span<Sign> signs_;
  const std::function<bool()>* const waits_for_callers_;
  const std::function<bool()> go_on_;
  shm::Patience patience_;
  Patient& messages_;
  collectives::Subgroup column_;
  PartList list_;
};

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_HIERARCHY_HIERARCHY_H_
