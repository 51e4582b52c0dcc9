// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_FABRIC_TESTING_FUSION_FIXTURE_H_
#define RAILHEAD_FABRIC_TESTING_FUSION_FIXTURE_H_

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/testing/finding_checks.h"
#include "fabric/discovery/fusion.h"
#include "fabric/discovery/observations.h"

namespace railhead::fabric {

// Observations, put together by hand.
class FusionFixture : public ::testing::Test {
 protected:
  void Switch(const std::string& name) {
    seen_.devices.push_back({name, name, DeviceKind::kSwitch});
  }
  void Link(const std::string& node, const std::string& nic, const std::string& at,
            Evidence evidence = Evidence::kInfiniBand, double gbps = 400) {
    seen_.devices.push_back({node, node, DeviceKind::kHost});
    seen_.links.push_back({{node, nic}, {at, absl::StrCat(++port_)}, evidence, gbps, "f:1"});
  }
  void Uplink(const std::string& a, const std::string& b) {
    seen_.links.push_back({{a, absl::StrCat(++port_)},
                           {b, absl::StrCat(++port_)},
                           Evidence::kInfiniBand,
                           400,
                           "f:2"});
  }
  SeenNode& Node(const std::string& name, int rails) {
    SeenNode node;
    node.name = name;
    node.gpus = 8;
    std::vector<SeenRail> seen;
    for (int r = 0; r < rails; ++r) {
      seen.push_back({r, absl::StrCat("mlx5_", r), "", 400, true, "", 0, {}});
    }
    if (rails > 0) node.rails = std::move(seen);
    seen_.nodes.push_back(node);
    return seen_.nodes.back();
  }
  // Calls `change` with rail `rail` of the node.
  template <typename Change>
  static void ChangeRail(SeenNode& node, int rail, Change change) {
    node.rails->Change(
        [&](std::vector<SeenRail>& rails) { change(rails.at(static_cast<size_t>(rail))); });
  }
  void Label(SeenNode& node, std::vector<std::string> values) {
    const std::vector<std::string> levels = {"spine", "leaf"};
    SeenPlace place = {"Topograph", {}};
    for (size_t i = 0; i < values.size(); ++i) place.levels.emplace_back(levels[i], values[i]);
    node.places = {place};
  }
  DiscoveredFabric Fuse() {
    absl::StatusOr<DiscoveredFabric> found = FuseObservations(seen_, "f");
    EXPECT_TRUE(found.ok()) << found.status();
    if (!found.ok()) return {};
    for (const Finding& finding : found->findings) ExpectWhole(finding);
    return *std::move(found);
  }
  static std::vector<std::string> Names(const DiscoveredFabric& found) {
    std::vector<std::string> names;
    for (const Finding& finding : found.findings) {
      names.push_back(
          absl::StrCat(finding.severity == Severity::kNote ? "note " : "", finding.check));
    }
    return names;
  }

  Observations seen_;
  int port_ = 0;
};

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_TESTING_FUSION_FIXTURE_H_
