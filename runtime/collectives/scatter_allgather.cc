// SPDX-License-Identifier: Apache-2.0
#include <utility>
#include <vector>

#include "runtime/base/parts.h"
#include "runtime/collectives/algorithms.h"
#include "runtime/collectives/arc.h"
#include "runtime/collectives/binomial_place.h"
#include "runtime/collectives/gather_around.h"
#include "runtime/collectives/schedule.h"
#include "runtime/collectives/subgroup.h"

namespace railhead::collectives {
namespace {

BinomialPlace PlaceOf(size_t rank, size_t ranks) {
  return {static_cast<int>(rank), static_cast<int>(ranks), 0};
}

// From rank 0 on: each gets its parts and those of all ranks below it.
class Scatter final : public Schedule {
 public:
  Scatter(size_t rank, std::byte* data, const Parts& parts)
      : rank_(rank), place_(PlaceOf(rank, parts.ranks())), data_(data), parts_(parts) {}

  size_t sends() const override { return place_.children(); }
  size_t receives() const override { return place_.is_root() ? 0 : 1; }
  Outgoing Send(size_t n) const override {
    // Starts with the child that has the most ranks below it.
    const size_t child = place_.children() - 1 - n;
    const Range range = Arc(parts_, rank_ + (size_t{1} << child), place_.child_size(child))[0];
    Outgoing outgoing = To(place_.child(child), data_ + range.begin, range.size);
    if (!place_.is_root()) outgoing.needs = 0;
    return outgoing;
  }
  Incoming Receive(size_t /*n*/) const override {
    const Range range = Arc(parts_, rank_, place_.size())[0];
    return From(place_.parent(), data_ + range.begin, range.size);
  }

 private:
  const size_t rank_;
  const BinomialPlace place_;
  std::byte* const data_;
  const Parts parts_;
};

}  // namespace

absl::Status ScatterAllGatherBroadcast(Messenger& messenger, int rank, const Operation& operation) {
  CopyAtRoot(rank, operation);
  const int root = operation.root;
  const auto ranks = static_cast<size_t>(operation.ranks);
  // Counted from the root on.
  std::vector<int> from_root(ranks);
  for (int r = 0; r < operation.ranks; ++r) {
    from_root[static_cast<size_t>(r)] = (root + r) % operation.ranks;
  }
  Subgroup all(messenger, std::move(from_root));
  const int self = (rank - root + operation.ranks) % operation.ranks;
  const Parts parts(ranks, operation.count);
  absl::Status done = Run(all, Scatter(static_cast<size_t>(self), operation.receive, parts));
  if (!done.ok()) return done;
  return GatherAround(all, self, operation.receive, parts,
                      [](size_t of, size_t among) { return PlaceOf(of, among).size(); });
}

}  // namespace railhead::collectives
