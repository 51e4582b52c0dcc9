// SPDX-License-Identifier: Apache-2.0
//
// Hierarchical collectives: ranks in several places, with shared memory within each place and rails
// between places. Used by Communicator.
//
// Each place does its part in shared memory. For the rest, ranks form columns: column i consists of
// the ranks with number i in their places, and there are as many columns as the smallest place has
// ranks. Each column does its part over rails, with its own algorithm. So the ranks of columns are
// leaders: each is responsible for one part, and only its rails carry that part. Additional ranks
// of larger places are not leaders.
//
//   all-reduce      reduce-scatter in memory, all-reduce in columns, all-gather in memory
//   reduce-scatter  reduce-scatter in memory, then in columns
//   all-gather      all-gather in columns, then in memory
//   broadcast       in memory of the root's place, then of one part per column, then all-gather in
//                   memory of the other places
//
// Small messages use fewer leaders (collectives/leaders.h). With a single leader, reduce and
// broadcast in memory replace reduce-scatter and all-gather.
//
// In reduce-scatter and all-gather, columns carry parts of ranks. The part of a rank without a
// column is divided among the leaders of its place, and takes one additional round for each such
// rank of the largest place. These ranks exchange their parts with the leaders in messages.
//
// All ranks of an all-reduce get identical bits, because each part is computed in one column, whose
// algorithm gives all its ranks the same bits. 16- and 8-bit floats are rounded once for all ranks
// of a place, and then as often as the column's algorithm rounds for one rank per place.
//
// A rank that waits in memory does not poll its rails, so no other rank may depend on that: each
// stage over rails ends only when everything it sent is on its way. A waiting rank does not time
// out while another rank of its place makes progress: every rank records in memory the time of its
// last progress. Large all-reduces and broadcasts are done in pieces, so that columns stay in step.
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
#include "runtime/collectives/operation.h"
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

// Size of a leader's part of a piece, in bytes. Its transfer takes much longer than its start.
inline constexpr size_t kPiece = size_t{4} << 20U;

// Part of one rank in the hierarchy. One thread at a time, except where stated.
class Hierarchy {
  // In shared memory: time of a rank's last progress, in nanoseconds of the monotonic clock.
  struct alignas(64) Sign {
    std::atomic<int64_t> last_moved{0};
  };

 public:
  struct Options {
    std::vector<std::vector<int>> places;  // of all ranks, at least two; see Decision
    int rank = 0;
    bool crowded = false;
    std::byte* memory = nullptr;  // of this rank's place
    // Timeout in memory and over rails, and cancellation. The hierarchy sets how to wait.
    shm::Patience patience;
  };
  // Returns the size of the memory of a place of `local_ranks` ranks. It must be zero before the
  // first of them starts.
  static size_t Bytes(int local_ranks) {
    return shm::Group::Bytes(local_ranks) + shm::Mailbox::Bytes(local_ranks) +
           shm::CallChecker::Bytes(local_ranks) + static_cast<size_t>(local_ranks) * sizeof(Sign);
  }

  // Routes messages between ranks of this place through its memory, too. The memory must outlive
  // the result, which must outlive the use of `messages`.
  static absl::StatusOr<std::unique_ptr<Hierarchy>> Create(Options options, Patient& messages);

  // Records the next call of this rank, for calls that all ranks make, with any algorithm. Returns
  // Internal if another rank of this place made a different call.
  absl::Status Begin(collectives::Call call) { return checker_.Post(call); }

  // Does this rank's part of an operation that the hierarchy performs (ways.h): one of the above,
  // or a barrier, which is an all-reduce of a byte. `call` is its fingerprint, `columns` the
  // algorithm of columns.
  absl::Status Run(const collectives::Operation& operation, collectives::Call call,
                   collectives::AlgorithmFunction& columns);

  // Memory of this rank's place, and the ranks that share it, by their number there.
  shm::Group& memory() { return group_; }
  const std::vector<int>& here() const { return places_[self_.place]; }
  bool IsHere(int rank) const { return std::binary_search(here().begin(), here().end(), rank); }
  // Equal on all ranks.
  int place_count() const { return static_cast<int>(places_.size()); }
  int column_count() const { return static_cast<int>(columns_); }
  int round_count() const { return static_cast<int>(rounds_); }
  // Thread-safe. Bytes exchanged through shared memory between this rank and others.
  Traffic Moved() const {
    return {group_.given_bytes() + mailbox_.given_bytes(),
            group_.taken_bytes() + mailbox_.taken_bytes()};
  }

 private:
  // Values of each rank, if these do not simply follow each other.
  class PartList {
   public:
    void Clear();
    void Add(const Range& range);
    // In units of `unit` values.
    Parts Of(size_t unit) const { return Parts(sizes_, begins_, unit); }

   private:
    std::vector<size_t> sizes_;
    std::vector<size_t> begins_;
  };
  // Position of a rank.
  struct Position {
    size_t place = 0;
    size_t number = 0;  // within the place; also its column, if less than the number of columns
  };
  Hierarchy(Options options, Patient& messages);

  Position PositionOf(int rank) const;
  int LocalRanks() const { return static_cast<int>(here().size()); }
  bool Leads() const { return self_.number < columns_; }
  // Returns true if another rank of this place made progress within the timeout.
  bool MovesHere() const;

  // An operation that is running.
  struct Work {
    const collectives::Operation& operation;
    collectives::Call call;
    collectives::AlgorithmFunction& columns;
  };
  absl::Status AllReduce(const Work& work);
  absl::Status ReduceScatter(const Work& work);
  absl::Status AllGather(const Work& work);
  absl::Status Broadcast(const Work& work);
  // `count` values, or bytes, from the value `begin` on.
  absl::Status AllReducePiece(const Work& work, size_t begin, size_t count);
  absl::Status BroadcastPiece(const Work& work, size_t begin, size_t count, const Position& root);
  // Runs `columns` on this rank's part of an operation, with one rank per place.
  absl::Status InColumn(const Work& work, collectives::Operation part);
  // Divides `count` values among the leaders of a place; returns the number of leaders.
  size_t ListLeaders(size_t count, size_t element);

  // Parts of ranks go over rails in rounds. In round 0 each column carries the parts of its ranks;
  // in each later round, the part of one rank without a column from each place that has one.
  size_t Rounds(size_t place) const { return places_[place].size() - columns_ + 1; }
  // Returns the values of a place that a column carries in a round; empty if the place has fewer
  // rounds.
  Range Slice(const Parts& parts, size_t element, size_t place, size_t round, size_t column) const;
  // Lists the values of a place that the columns carry in a round, by the ranks of this place.
  void ListSlices(const Parts& parts, size_t element, size_t place, size_t round);
  // Exchanges slices between leaders of this place and its ranks without a column: the parts of the
  // latter. `memory` returns the address of a slice on this rank; it is called once for each slice,
  // on a leader in the order of rounds.
  absl::Status PassSlices(collectives::Call call, const Parts& parts, size_t element,
                          collectives::Transfer::Direction of_leaders,
                          absl::FunctionRef<std::byte*(const Range& slice)> memory);

  absl::Status InMemory(
      collectives::Call call,
      absl::FunctionRef<absl::Status(shm::Group& group, const shm::Patience& patience)> run);
  absl::Status OverRails(collectives::Call call, absl::FunctionRef<absl::Status()> run);

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
