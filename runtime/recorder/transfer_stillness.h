// SPDX-License-Identifier: Apache-2.0
//
// Transfers (rhIsend, rhIrecv) without progress: of one rank, for its answer to a query; and from
// the answers of all, pairs of ranks that cannot reach each other.
//
// A rank knows that it has a message which its peer has not taken, but not whether the peer runs
// any transfers: if it does not, the message waits. So two ranks are stuck if one of them has had
// such a message for the timeout, and the other one, for as long, a message or a transfer for the
// first, or a receive from any rank. It does not matter whether they have ever been connected.
//
// Pure: the caller passes the time. Not thread-safe.
#ifndef RAILHEAD_RUNTIME_RECORDER_TRANSFER_STILLNESS_H_
#define RAILHEAD_RUNTIME_RECORDER_TRANSFER_STILLNESS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "runtime/recorder/position.h"
#include "runtime/recorder/report.h"

namespace railhead::recorder {

// Used by the transfer lane.
class TransferStillness {
 public:
  // `timeout` of transfers.
  explicit TransferStillness(absl::Duration timeout) : timeout_(timeout) {}

  // The rank of receives from any rank that match no message yet.
  static constexpr int kAny = -1;
  // State of the transfers with a rank.
  struct Peer {
    uint64_t progress = 0;    // increases as they come nearer to completion
    bool under_way = false;   // some message is being sent, or its bytes are awaited
    bool unfinished = false;  // some transfer
  };
  // Call at short intervals, with all ranks that have either.
  void Look(absl::Time now, const std::map<int, Peer>& peers);

  // Return the ranks with which messages are under way, or transfers unfinished, and have not come
  // nearer to completion for at least `time`.
  std::vector<int> UnderWay(absl::Time now, absl::Duration time) const;
  std::vector<int> Unfinished(absl::Time now, absl::Duration time) const;

  // Returns the answer of this rank to the query of that number.
  StillTransfers At(absl::Time now, int rank, uint32_t query) const;

 private:
  struct Since {
    uint64_t progress = 0;
    absl::Time under_way = absl::InfiniteFuture();
    absl::Time unfinished = absl::InfiniteFuture();
  };

  const absl::Duration timeout_;
  absl::Time looked_ = absl::InfinitePast();
  std::map<int, Since> peers_;
};

// Returns pairs of ranks that are stuck with each other, smaller rank first, by the answers to one
// query. At most kMostPairs; only answers to this query count.
inline constexpr size_t kMostPairs = 8;
std::vector<std::pair<int, int>> StuckPairs(const std::vector<Seen>& ranks);

}  // namespace railhead::recorder

#endif  // RAILHEAD_RUNTIME_RECORDER_TRANSFER_STILLNESS_H_
