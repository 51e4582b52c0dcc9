// SPDX-License-Identifier: Apache-2.0
//
// Several rails between two sides, over fake NICs, for tests of faults.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_VERBS_RAILS_FOR_TEST_H_
#define RAILHEAD_RUNTIME_TRANSPORT_VERBS_RAILS_FOR_TEST_H_

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/rails/peer.h"
#include "runtime/transport/verbs/verbs_pair_for_test.h"

namespace railhead::transport::verbs {

// NICs "a0", "b0", "a1", ...: of each rail one for each side.
inline std::vector<FakeDevice> DevicesOfRails(Network network, size_t rails) {
  std::vector<FakeDevice> devices;
  for (size_t k = 0; k < rails; ++k) {
    devices.push_back(DeviceOn(network, absl::StrCat("a", k), absl::StrCat("10.", k, ".0.1")));
    devices.push_back(DeviceOn(network, absl::StrCat("b", k), absl::StrCat("10.", k, ".0.2")));
  }
  return devices;
}

// Connected rails; by side, a and b. The devices must outlive what is made of the rails.
struct RailsOfTwoSides {
  std::array<std::vector<std::unique_ptr<VerbsDevice>>, 2> devices;
  std::array<std::vector<rails::Rail>, 2> rails;
};

// `settings` is called for each side of each rail, in that order.
inline RailsOfTwoSides ConnectRails(const std::shared_ptr<FakeVerbs>& fake, size_t rails,
                                    absl::FunctionRef<VerbsSettings()> settings) {
  RailsOfTwoSides made;
  for (size_t k = 0; k < rails; ++k) {
    const std::array acceptors = {OpenAcceptor(), OpenAcceptor()};
    for (const size_t side : {0, 1}) {
      made.devices.at(side).push_back(
          *OpenFake(fake, absl::StrCat(side == 0 ? "a" : "b", k), settings()));
      made.rails.at(side).push_back(
          {{static_cast<int>(k), "fake", 1, "verbs"},
           *OpenVerbsLink(*made.devices.at(side).back(), acceptors.at(side),
                          acceptors.at(1 - side)->Address(), absl::StrCat("rank ", 1 - side))});
    }
    const absl::Status connected =
        ConnectLinks(*fake, *made.rails[0].back().link, *made.rails[1].back().link);
    EXPECT_TRUE(connected.ok()) << connected;
  }
  return made;
}

// Ends all faults of these rails.
inline void Heal(FakeVerbs& fake, size_t rails) {
  for (size_t k = 0; k < rails; ++k) {
    for (const char* side : {"a", "b"}) {
      fake.SetPortState(absl::StrCat(side, k), IBV_PORT_ACTIVE);
      fake.HoldCompletions(absl::StrCat(side, k), false);
      for (size_t pair = 0; pair < kMostQpsPerRail; ++pair) {
        fake.LosePath(absl::StrCat(side, k), pair, false);
      }
    }
  }
}

}  // namespace railhead::transport::verbs

#endif  // RAILHEAD_RUNTIME_TRANSPORT_VERBS_RAILS_FOR_TEST_H_
