// SPDX-License-Identifier: Apache-2.0
//
// Collectives of ranks that live in several places, each with as many ranks that share memory. What
// can be done inside a place is done in its memory. For the rest ranks form columns: those that
// have the same number in their places. Each column does its part over rails, with an algorithm of
// its own choice, so every rank leads for a part, and its rails carry that part alone.
//
//   all-reduce      reduce-scatter in memory, all-reduce in columns, all-gather in memory
//   reduce-scatter  reduce-scatter in memory, then in columns
//   all-gather      all-gather in columns, then in memory
//   broadcast       in the root's memory, then of a part in each column, all-gather in the others'
//                   memories
//
// Of small messages some ranks lead no part (collectives/leaders.h).
//
// All ranks of an all-reduce get the same bits, since each part is computed in one column and its
// algorithm gives all of it the same. 16- and 8-bit floats are rounded once for all ranks of a
// place, and then as often as the column's algorithm does for as many ranks as there are places.
//
// Who waits in memory does not look at its rails, so nothing must depend on that: each stage over
// rails ends when all that it sent is on its way. And a rank must not lose patience with one that
// still sends: large all-reduces and broadcasts are done in pieces, so that columns stay together.
#ifndef RAILHEAD_RUNTIME_COMM_HIERARCHY_H_
#define RAILHEAD_RUNTIME_COMM_HIERARCHY_H_

#include <cstddef>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/base/parts.h"
#include "runtime/collectives/call.h"
#include "runtime/collectives/messenger.h"
#include "runtime/collectives/subgroup.h"
#include "runtime/collectives/ways.h"
#include "runtime/comm/patient.h"
#include "runtime/reduce/reduce.h"
#include "runtime/shm/board.h"
#include "runtime/shm/group.h"
#include "runtime/shm/patience.h"

namespace railhead::comm {

// What a rank leads of a piece, in bytes: much longer than it takes to begin one.
inline constexpr size_t kPiece = size_t{4} << 20U;

// One rank's place in it. Used by one thread at a time.
class Hierarchy {
 public:
  struct Options {
    std::vector<std::vector<int>> places;  // of all ranks; see Decision
    int rank = 0;
    bool crowded = false;
    std::byte* memory = nullptr;  // of this rank's place
    // How long to wait, in memory and over rails; how to is seen from the rest.
    shm::Patience patience;
  };
  // How much memory a place of so many ranks needs. It is zero before the first of them begins.
  static size_t Bytes(int local_ranks) {
    return shm::Group::Bytes(local_ranks) + shm::Board::Bytes(local_ranks);
  }

  // The memory and the mesh outlive this.
  Hierarchy(Options options, Patient& mesh);

  // Says what this rank calls next, of all that all ranks call, in whichever way it will be done.
  // Internal if another one of this place contradicts it.
  absl::Status Begin(collectives::Call call) { return board_.Post(call); }

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
  // How many ranks a place has.
  int local_ranks() const { return static_cast<int>(here().size()); }

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
    size_t column = 0;
  };

  Position PositionOf(int rank) const;

  absl::Status AllReducePiece(collectives::Call call, collectives::AllReduceFunction columns,
                              const reduce::Reduction& reduction, const std::byte* send,
                              std::byte* receive, size_t count);
  absl::Status BroadcastPiece(collectives::Call call, collectives::RootedFunction columns,
                              const std::byte* send, std::byte* receive, size_t bytes,
                              const Position& root);
  // Divides so many values among the leaders of a place.
  void ListLeaders(size_t count, size_t element);
  // The parts of a place's ranks.
  void ListPlace(const Parts& parts, size_t place);

  absl::Status InMemory(
      collectives::Call call,
      absl::FunctionRef<absl::Status(shm::Group& group, const shm::Patience& patience)> run);
  absl::Status OverRails(
      collectives::Call call,
      absl::FunctionRef<absl::Status(collectives::Messenger& column, int rank, int ranks)> run);

  const std::vector<std::vector<int>> places_;
  const Position self_;
  shm::Group group_;
  shm::Board board_;
  shm::Patience patience_;
  Patient& mesh_;
  collectives::Subgroup column_;
  PartList list_;
};

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_HIERARCHY_H_
