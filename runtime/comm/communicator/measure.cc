// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/communicator/measure.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "runtime/base/now.h"
#include "runtime/collectives/algorithms.h"
#include "runtime/collectives/call.h"
#include "runtime/collectives/operation.h"
#include "runtime/collectives/point_to_point.h"
#include "runtime/collectives/ways.h"

namespace railhead::comm {
namespace {

using collectives::Messenger;
using collectives::Operation;
using collectives::Transfer;

constexpr size_t kSmall = 8;
constexpr size_t kLarge = size_t{64} << 10U;
constexpr int kSmallRounds = 15;
constexpr int kLargeRounds = 3;

// Returns the median time of several rounds.
template <class Round>
absl::StatusOr<double> Median(int rounds, Round round) {
  std::vector<double> seconds;
  for (int i = 0; i < rounds; ++i) {
    const absl::Time start = MonotonicNow();
    if (absl::Status done = round(); !done.ok()) return done;
    seconds.push_back(absl::ToDoubleSeconds(MonotonicNow() - start));
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

// Duration of an operation: a constant, in seconds, and seconds per byte.
struct Cost {
  double alpha = 0;
  double beta = 0;
};
Cost CostOf(double small, double large) { return {small, std::max(large - small, 0.0) / kLarge}; }

// Messages between this rank and its partner.
class Partner {
 public:
  Partner(Messenger& messenger, int rank, int partner)
      : messenger_(messenger), rank_(rank), partner_(partner), out_(kLarge), in_(kLarge) {}

  // Sends a small message and receives one back.
  absl::StatusOr<double> ThereAndBack() {
    return Median(kSmallRounds, [this] {
      const Transfer send = {Transfer::Direction::kSend, partner_, out_.data(), kSmall};
      const Transfer receive = {Transfer::Direction::kReceive, partner_, in_.data(), kSmall};
      const bool begins = rank_ < partner_;
      absl::Status done = collectives::RunTransfers(messenger_, rank_, {begins ? send : receive});
      if (!done.ok()) return done;
      return collectives::RunTransfers(messenger_, rank_, {begins ? receive : send});
    });
  }

  // Sends a large message while another one arrives.
  absl::StatusOr<double> Exchange() {
    return Median(kLargeRounds, [this] {
      const Transfer send = {Transfer::Direction::kSend, partner_, out_.data(), kLarge};
      const Transfer receive = {Transfer::Direction::kReceive, partner_, in_.data(), kLarge};
      return collectives::RunTransfers(messenger_, rank_, {send, receive});
    });
  }

 private:
  Messenger& messenger_;
  int rank_;
  int partner_;
  std::vector<std::byte> out_;
  std::vector<std::byte> in_;
};

// Measures the part of an all-reduce that runs in shared memory.
absl::StatusOr<Cost> MeasureMemory(Hierarchy& hierarchy) {
  collectives::AlgorithmFunction* const nothing = [](Messenger&, int, const Operation&) {
    return absl::OkStatus();
  };
  std::vector<std::byte> buffer(kLarge);
  const auto all_reduce = [&](size_t bytes) {
    const Operation operation = {.collective = collectives::Collective::kAllReduce,
                                 .reduction = {rhUint8, rhMax, 1, {}},
                                 .send = buffer.data(),
                                 .receive = buffer.data(),
                                 .count = bytes};
    return hierarchy.Run(operation, collectives::Call(), *nothing);
  };
  const absl::StatusOr<double> small = Median(kSmallRounds, [&] { return all_reduce(kSmall); });
  if (!small.ok()) return small.status();
  const absl::StatusOr<double> large = Median(kLargeRounds, [&] { return all_reduce(kLarge); });
  if (!large.ok()) return large.status();
  return CostOf(*small, *large);
}

}  // namespace

absl::StatusOr<tuner::Network> MeasureNetwork(Messenger& messenger, const Measurers& ranks,
                                              Hierarchy* hierarchy) {
  const int rank = ranks.rank;
  // Before the rails, whose last messages may need further polling.
  Cost memory;
  if (hierarchy != nullptr) {
    const absl::StatusOr<Cost> measured = MeasureMemory(*hierarchy);
    if (!measured.ok()) return measured.status();
    memory = *measured;
  }
  Cost rails;
  if (ranks.partner != rank) {
    Partner partner(messenger, rank, ranks.partner);
    const absl::StatusOr<double> small = partner.ThereAndBack();
    if (!small.ok()) return small.status();
    const absl::StatusOr<double> large = partner.Exchange();
    if (!large.ok()) return large.status();
    rails = CostOf(*small / 2, *large);
  }
  const std::array<double, 5> mine = {rails.alpha, rails.beta, memory.alpha, memory.beta,
                                      -static_cast<double>(ranks.most_peers)};
  std::array<double, 5> slowest{};  // for most_peers: negated, so that the maximum is the smallest
  absl::Status agreed = collectives::RecursiveDoublingAllReduce(
      messenger, rank,
      {.collective = collectives::Collective::kAllReduce,
       .ranks = ranks.world_size,
       .reduction = {rhFloat64, rhMax, 1, {}},
       .send = reinterpret_cast<const std::byte*>(mine.data()),
       .receive = reinterpret_cast<std::byte*>(slowest.data()),
       .count = mine.size()});
  if (!agreed.ok()) return agreed;
  tuner::Network network;
  network.alpha = slowest[0];
  network.beta = slowest[1];
  if (hierarchy != nullptr) {
    network.places = hierarchy->place_count();
    network.columns = hierarchy->column_count();
    network.rounds = hierarchy->round_count();
  }
  network.local_alpha = slowest[2];
  network.local_beta = slowest[3];
  network.most_peers = static_cast<int>(-slowest[4]);
  return network;
}

}  // namespace railhead::comm
