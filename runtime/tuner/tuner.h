// SPDX-License-Identifier: Apache-2.0
//
// Model-based choice of the algorithm of a collective; autotuner.h corrects it by measurement.
// Pure: equal inputs give equal results on all ranks.
//
// The model is Hockney's (R. W. Hockney, "The communication challenge for MPP", 1994): a message of
// b bytes takes alpha + beta b seconds, reducing b bytes takes gamma b. An algorithm's time follows
// from its chain of dependent messages, and the bytes a rank sends and reduces: see the formulas in
// collectives/ways.cc.
#ifndef RAILHEAD_RUNTIME_TUNER_TUNER_H_
#define RAILHEAD_RUNTIME_TUNER_TUNER_H_

#include <climits>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/collectives/collective.h"

namespace railhead::tuner {

// Combined properties of a rank's rails while all ranks send.
struct Network {
  double alpha = 20e-6;      // seconds
  double beta = 1 / 1e9;     // seconds per byte, one way
  double gamma = 1 / 8e9;    // seconds per byte
  int most_peers = INT_MAX;  // maximum number of peers a rank can connect to
  // For ranks in several places with shared memory inside each (comm/hierarchy.h): number of
  // places; number of columns that run concurrently between them, the ranks of the smallest place;
  // and the cost of the part of an all-reduce in memory.
  int places = 1;
  int columns = 1;
  // in which columns carry parts, one more for each rank the largest place has more
  int rounds = 1;
  double local_alpha = 10e-6;   // seconds
  double local_beta = 1 / 4e9;  // seconds per byte
};

// Algorithms that run a collective.
struct Choice {
  collectives::Algorithm algorithm = collectives::Algorithm::kRing;
  // For kHierarchical: the algorithm between places.
  collectives::Algorithm among_places = collectives::Algorithm::kRing;

  bool operator==(const Choice&) const = default;
};
// Returns "ring", "hierarchical (ring)".
std::string Name(const Choice& choice);

// Returns true if both send the same bytes in the same steps, whatever the model: between two ranks
// most algorithms are one exchange, or two of halves.
bool SameSteps(collectives::Collective collective, const Choice& a, const Choice& b, int ranks);

struct Estimate {
  Choice choice;
  double seconds;
  size_t memory;  // bytes of a rank besides its buffers

  // Returns true if the memory is small enough to be used without the user's request. One such
  // algorithm always exists, unless ranks cannot connect to all others.
  bool is_modest() const { return memory <= kMostMemory; }
  static constexpr size_t kMostMemory = size_t{64} << 20U;
};

// Returns all possible algorithms: the fastest first, those that are not modest last. `bytes` as in
// metrics: of the larger of a rank's two buffers.
std::vector<Estimate> Estimates(collectives::Collective collective, size_t bytes, int ranks,
                                const Network& network);

// A user's override: the first matching entry applies.
struct Pin {
  collectives::Collective collective;
  size_t most_bytes;  // SIZE_MAX: any size
  collectives::Algorithm algorithm;
};
// Returns "all_reduce<=65536=ring".
std::string ToString(const Pin& pin);

// Parses "all_reduce<=64K=recursive_doubling,all_reduce=ring": sizes in bytes, or with K, M or G.
// InvalidArgument names the invalid entry and the allowed values.
absl::StatusOr<std::vector<Pin>> ParsePins(absl::string_view text);

// Returns InvalidArgument for the first entry that no collective of these ranks can follow at any
// size, or between places. `flat_reason`: why there are no places; "" if there are, or none has
// several ranks.
absl::Status CheckPins(const std::vector<Pin>& pins, int ranks, const Network& network,
                       absl::string_view flat_reason);

// The model's choice, with overrides.
class Tuner {
 public:
  Tuner(int ranks, const Network& network, std::vector<Pin> pins)
      : ranks_(ranks), network_(network), pins_(std::move(pins)) {}

  // Returns true if a user's override applies.
  bool IsPinned(collectives::Collective collective, size_t bytes) const {
    return Pinned(collective, bytes, ranks_, network_) != nullptr;
  }
  // Returns the fastest algorithm allowed by overrides.
  Choice Choose(collectives::Collective collective, size_t bytes) const;

  // Returns the estimates of all possible algorithms.
  std::vector<Estimate> Estimates(collectives::Collective collective, size_t bytes) const {
    return tuner::Estimates(collective, bytes, ranks_, network_);
  }
  double Seconds(collectives::Collective collective, const Choice& choice, size_t bytes) const;

  int ranks() const { return ranks_; }
  const Network& network() const { return network_; }

 private:
  const Pin* Pinned(collectives::Collective collective, size_t bytes, int ranks,
                    const Network& network) const;

  int ranks_;
  Network network_;
  std::vector<Pin> pins_;
};

}  // namespace railhead::tuner

#endif  // RAILHEAD_RUNTIME_TUNER_TUNER_H_
