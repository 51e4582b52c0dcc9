// SPDX-License-Identifier: Apache-2.0
//
// Fabrics from the LLDP neighbours of switches and hosts alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/finding.h"
#include "fabric/discovery/fusion.h"
#include "fabric/discovery/observations.h"
#include "fabric/discovery/source.h"

namespace railhead::fabric {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Output of lldpcli -f json on several devices.
class LldpFabrics : public ::testing::Test {
 protected:
  static std::string Described(const std::string& name, const std::string& description,
                               bool forwards) {
    return absl::StrCat(
        R"({")", name, R"(": {"id": {"type": "mac", "value": "mac )", name, R"("}, "descr": ")",
        description, R"(", "capability": [{"type": "Bridge", "enabled": )",
        forwards ? "true" : "false", R"(}, {"type": "Station", "enabled": true}]}})");
  }
  static std::string Switch(const std::string& name) { return Described(name, "a switch", true); }
  static std::string Host(const std::string& name) {
    return Described(name, "Ubuntu 24.04.1 LTS Linux 6.8.0-45-generic #45-Ubuntu SMP", true);
  }
  // As the firmware of a NIC describes it.
  static std::string Firmware(const std::string& mac) {
    return absl::StrCat(R"({"id": {"type": "mac", "value": ")", mac, R"("}, "ttl": "120"})");
  }

  void Speaker(const std::string& chassis) {
    Flush();
    text_ = absl::StrCat(R"({"local-chassis": {"chassis": )", chassis, "}}\n");
  }
  void Sees(const std::string& interface, const std::string& chassis, const std::string& port) {
    neighbours_.push_back(absl::StrCat(R"({")", interface, R"(": {"via": "LLDP", "chassis": )",
                                       chassis, R"(, "port": {"id": {"type": "ifname", "value": ")",
                                       port, R"("}}}})"));
  }
  DiscoveredFabric Fuse() {
    Flush();
    absl::StatusOr<DiscoveredFabric> found = FuseObservations(seen_, "f");
    EXPECT_TRUE(found.ok()) << found.status();
    return found.ok() ? *std::move(found) : DiscoveredFabric();
  }

 private:
  void Flush() {
    if (text_.empty()) return;
    absl::StrAppend(&text_, R"({"lldp": {"interface": [)", absl::StrJoin(neighbours_, ",\n"),
                    "]}}\n");
    absl::StatusOr<Observations> more = ReadSource(text_, "l.json");
    ASSERT_TRUE(more.ok()) << more.status();
    Append(*std::move(more), seen_);
    text_.clear();
    neighbours_.clear();
  }

  std::string text_;
  std::vector<std::string> neighbours_;
  Observations seen_;
};

TEST_F(LldpFabrics, FirmwareOfNicsIsNoSwitch) {
  for (const bool spine : {false, true}) {
    SCOPED_TRACE(spine);
    for (int leaf = 0; leaf < 2; ++leaf) {
      Speaker(Switch(absl::StrCat("leaf", leaf)));
      for (int i = 0; i < 3; ++i) {
        Sees(absl::StrCat("swp", i), Host(absl::StrCat("n", 3 * leaf + i)), "eth0");
        const std::string mac = absl::StrCat("b8:3f:d2:00:00:", leaf, i);
        Sees(absl::StrCat("swp", i), Firmware(mac), mac);
      }
      if (spine) Sees("swp9", Switch("spine0"), absl::StrCat("swp", leaf));
    }
    const DiscoveredFabric found = Fuse();
    EXPECT_EQ(found.model.nodes.size(), 6);
    if (spine) {
      ASSERT_THAT(found.model.levels, ElementsAre("spine", "leaf"));
      EXPECT_EQ(found.model.domains[0][0].name, "spine0");
      EXPECT_THAT(found.switches[0][0], ElementsAre("spine0"));
    } else {
      EXPECT_THAT(found.model.levels, ElementsAre("leaf"));
    }
    EXPECT_THAT(FindingLine(found.findings.back()),
                HasSubstr("chassis mac b8:3f:d2:00:00:00, chassis mac b8:3f:d2:00:00:01, "));
    EXPECT_THAT(FindingLine(found.findings.back()), HasSubstr("and 2 more: neither a name nor"));
  }
}

// It forwards packets between its containers, and is none of the spines for that.
TEST_F(LldpFabrics, AHostOfAnyDistributionIsAHost) {
  for (int i = 0; i < 6; ++i) {
    const std::string name = absl::StrCat("n", i);
    Speaker(i % 3 > 0 ? Host(name)
                      : Described(name,
                                  "openEuler 22.03 LTS Linux 5.10.0-60.18.0.50.x86_64 #1 SMP Wed "
                                  "Mar 30 2022 x86_64",
                                  true));
    Sees("eth0", Switch(i < 3 ? "leaf0" : "leaf1"), absl::StrCat("swp", i));
  }
  for (const char* leaf : {"leaf0", "leaf1"}) {
    Speaker(Switch(leaf));
    Sees("swp9", Switch("spine0"), leaf);
  }
  const DiscoveredFabric found = Fuse();
  EXPECT_EQ(found.model.nodes.size(), 6);
  ASSERT_THAT(found.model.levels, ElementsAre("spine", "leaf"));
  EXPECT_THAT(found.switches[0][0], ElementsAre("spine0"));
}

TEST_F(LldpFabrics, ASwitchThatOnlyHostsNameIsOneWithoutAName) {
  for (int i = 0; i < 4; ++i) {
    Speaker(Host(absl::StrCat("n", i)));
    Sees("eth0", Firmware(i < 2 ? "02:aa" : "02:bb"), absl::StrCat("p", i));
  }
  const DiscoveredFabric found = Fuse();
  ASSERT_EQ(found.model.domains[0].size(), 2);
  EXPECT_EQ(found.model.domains[0][0].name, "chassis mac 02:aa");
}

}  // namespace
}  // namespace railhead::fabric
