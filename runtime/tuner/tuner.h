// SPDX-License-Identifier: Apache-2.0
//
// Which algorithm does a collective, by a model; learner.h finds out where it is wrong. Pure: all
// ranks that pass the same get the same.
//
// The model is Hockney's (R. W. Hockney, "The communication challenge for MPP", 1994): a message of
// b bytes takes alpha + beta b seconds, and to reduce b bytes takes gamma b. Each algorithm's time
// follows from how many messages wait for each other, and how many bytes a rank sends and reduces:
// the formulas stand beside the algorithms (collectives/ways.cc).
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

// What a rank's rails do together, while all ranks send.
struct Network {
  double alpha = 20e-6;      // seconds
  double beta = 1 / 1e9;     // seconds per byte, one way
  double gamma = 1 / 8e9;    // seconds per byte
  int most_peers = INT_MAX;  // how many others a rank can have a connection to
  // Where ranks live in several places, and share memory inside each (comm/hierarchy.h): how many
  // places there are, in how many columns they do their part between these, which is as many ranks
  // as the smallest place has, and what of an all-reduce is done in memory takes.
  int places = 1;
  int columns = 1;
  int rounds = 1;  // in which columns carry parts of ranks, one for each more that the largest has
  double local_alpha = 10e-6;   // seconds
  double local_beta = 1 / 4e9;  // seconds per byte
};

// How a collective is done.
struct Choice {
  collectives::Algorithm algorithm = collectives::Algorithm::kRing;
  // If that is hierarchical: how ranks of different places do their part.
  collectives::Algorithm among_places = collectives::Algorithm::kRing;

  bool operator==(const Choice&) const = default;
};
// "ring", "hierarchical (ring)".
std::string Name(const Choice& choice);

// Whether both send the same bytes in the same steps, whatever the model makes of them: among two
// ranks most ways come down to one exchange, or to two of halves.
bool SameSteps(collectives::Collective collective, const Choice& a, const Choice& b, int ranks);

struct Estimate {
  Choice choice;
  double seconds;
  size_t memory;  // bytes that a rank takes besides its buffers

  // Whether it takes so little memory that the user need not ask for it. There is always a way that
  // does, unless ranks cannot have connections to all others.
  bool is_modest() const { return memory <= kMostMemory; }
  static constexpr size_t kMostMemory = size_t{64} << 20U;
};

// All that can do it: the fastest first, and after these any that are not modest. `bytes` as in
// metrics: of the larger of a rank's two buffers.
std::vector<Estimate> Estimates(collectives::Collective collective, size_t bytes, int ranks,
                                const Network& network);

// What a user has laid down: the first entry that fits is followed.
struct Pin {
  collectives::Collective collective;
  size_t most_bytes;  // SIZE_MAX: any
  collectives::Algorithm algorithm;
};
// "all_reduce<=65536=ring".
std::string ToString(const Pin& pin);

// "all_reduce<=64K=recursive_doubling,all_reduce=ring": sizes in bytes, or with K, M or G.
// InvalidArgument says what is wrong with which entry, and what is allowed.
absl::StatusOr<std::vector<Pin>> ParsePins(absl::string_view text);

// InvalidArgument that names the first entry which no collective of these ranks can follow: not for
// any size, and not among places either. `flat_reason`: why there are no places; "" if there are,
// or none of several ranks.
absl::Status CheckPins(const std::vector<Pin>& pins, int ranks, const Network& network,
                       absl::string_view flat_reason);

// The model's choice, where nothing is laid down.
class Tuner {
 public:
  Tuner(int ranks, const Network& network, std::vector<Pin> pins)
      : ranks_(ranks), network_(network), pins_(std::move(pins)) {}

  // Whether a user has laid something down about it that can be followed.
  bool IsPinned(collectives::Collective collective, size_t bytes) const {
    return Pinned(collective, bytes, ranks_, network_) != nullptr;
  }
  // The fastest of what pins leave.
  Choice Choose(collectives::Collective collective, size_t bytes) const;

  // What all that can do it would take.
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
