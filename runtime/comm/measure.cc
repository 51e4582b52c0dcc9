// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/measure.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "runtime/collectives/point_to_point.h"
#include "runtime/collectives/recursive_doubling.h"
#include "runtime/comm/neighbours.h"

namespace railhead::comm {
namespace {

using collectives::Messenger;
using collectives::Transfer;

constexpr size_t kSmall = 8;
constexpr size_t kLarge = size_t{64} << 10U;
constexpr int kSmallRounds = 15;
constexpr int kLargeRounds = 3;

// Messages between this rank and its partner.
class Partner {
 public:
  Partner(Messenger& messenger, int rank)
      : messenger_(messenger), rank_(rank), out_(kLarge), in_(kLarge) {}

  // The median time of a small message: there and back, halved.
  absl::StatusOr<double> Latency() {
    return Median(kSmallRounds, 0.5, [this] {
      const Transfer send = {Transfer::Direction::kSend, rank_ ^ 1, out_.data(), kSmall};
      const Transfer receive = {Transfer::Direction::kReceive, rank_ ^ 1, in_.data(), kSmall};
      const bool begins = rank_ % 2 == 0;
      absl::Status done = collectives::RunTransfers(messenger_, rank_, {begins ? send : receive});
      if (!done.ok()) return done;
      return collectives::RunTransfers(messenger_, rank_, {begins ? receive : send});
    });
  }

  // The median time of a large one, while another comes.
  absl::StatusOr<double> Exchange() {
    return Median(kLargeRounds, 1, [this] {
      const Transfer send = {Transfer::Direction::kSend, rank_ ^ 1, out_.data(), kLarge};
      const Transfer receive = {Transfer::Direction::kReceive, rank_ ^ 1, in_.data(), kLarge};
      return collectives::RunTransfers(messenger_, rank_, {send, receive});
    });
  }

 private:
  template <class Round>
  static absl::StatusOr<double> Median(int rounds, double factor, Round round) {
    std::vector<double> seconds;
    for (int i = 0; i < rounds; ++i) {
      const absl::Time start = absl::Now();
      if (absl::Status done = round(); !done.ok()) return done;
      seconds.push_back(factor * absl::ToDoubleSeconds(absl::Now() - start));
    }
    std::sort(seconds.begin(), seconds.end());
    return seconds[seconds.size() / 2];
  }

  Messenger& messenger_;
  int rank_;
  std::vector<std::byte> out_;
  std::vector<std::byte> in_;
};

}  // namespace

absl::StatusOr<tuner::Network> MeasureNetwork(Messenger& messenger, int rank, int world_size) {
  std::array<double, 2> mine{};
  // The last of an odd number has no partner.
  if ((rank ^ 1) < world_size) {
    Partner partner(messenger, rank);
    const absl::StatusOr<double> small = partner.Latency();
    if (!small.ok()) return small.status();
    const absl::StatusOr<double> large = partner.Exchange();
    if (!large.ok()) return large.status();
    mine = {*small, std::max(*large - *small, 0.0) / kLarge};
  }
  std::array<double, 2> slowest{};
  absl::Status agreed = collectives::RecursiveDoublingAllReduce(
      messenger, rank, world_size, {rhFloat64, rhMax, 1, {}},
      reinterpret_cast<const std::byte*>(mine.data()), reinterpret_cast<std::byte*>(slowest.data()),
      mine.size());
  if (!agreed.ok()) return agreed;
  tuner::Network network;
  network.alpha = slowest[0];
  network.beta = slowest[1];
  network.all_connected = world_size <= kAllConnected;
  return network;
}

}  // namespace railhead::comm
