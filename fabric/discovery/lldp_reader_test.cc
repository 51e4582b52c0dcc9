// SPDX-License-Identifier: Apache-2.0
#include "fabric/discovery/lldp_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "fabric/discovery/observations.h"
#include "fabric/discovery/source.h"

namespace railhead::fabric {
namespace {

using ::testing::HasSubstr;

constexpr char kLocal[] = R"({"local-chassis": {"chassis": {"n0": {
  "id": {"type": "mac", "value": "02:00"},
  "capability": [{"type": "Router", "enabled": false}, {"type": "Station", "enabled": true}]}}}})";

constexpr char kTwo[] = R"({"lldp": {"interface": [
  {"rail0": {"via": "LLDP", "rid": "1",
    "chassis": {"leaf0": {"id": {"type": "mac", "value": "02:aa"},
      "capability": {"type": "Bridge", "enabled": true}}},
    "port": {"id": {"type": "ifname", "value": "swp1"}, "descr": "to n0",
      "auto-negotiation": {"current": "100GbaseCR4 - PMD"}}}},
  {"rail1": {"via": "LLDP",
    "chassis": {"leaf1": {"id": {"type": "local", "value": "leaf1"},
      "capability": [{"type": "Bridge", "enabled": false}, {"type": "Router", "enabled": true}]}},
    "port": {"id": {"type": "mac", "value": "02:bb"}, "descr": "swp7"}}},
  {"eth0": {"via": "CDPv2", "chassis": {}, "port": {}}}]}})";

absl::StatusOr<Observations> Read(const std::string& text) { return ReadSource(text, "l.json"); }

TEST(Lldp, ReadsWhatANodeSees) {
  const auto seen = Read(absl::StrCat(kLocal, "\n", kTwo));
  ASSERT_TRUE(seen.ok()) << seen.status();
  Observations want;
  want.devices = {{"chassis mac 02:00", "n0", DeviceKind::kHost},
                  {"chassis mac 02:aa", "leaf0", DeviceKind::kForwarder},
                  {"chassis local leaf1", "leaf1", DeviceKind::kForwarder}};
  want.links = {{{"chassis mac 02:00", "rail0"},
                 {"chassis mac 02:aa", "swp1"},
                 Evidence::kLldp,
                 100,
                 "l.json:5"},
                {{"chassis mac 02:00", "rail1"},
                 {"chassis local leaf1", "swp7"},
                 Evidence::kLldp,
                 0,
                 "l.json:10"}};
  EXPECT_EQ(*seen, want);
}

TEST(Lldp, Json0SaysTheSame) {
  constexpr char kJson0[] = R"(
{"local-chassis":[{"chassis":[{"id":[{"type":"mac","value":"02:00"}],"name":[{"value":"n0"}],
  "capability":[{"type":"Station","enabled":true}]}]}]}
{"lldp":[{"interface":[{"name":"rail0","via":"LLDP","chassis":[{
  "id":[{"type":"mac","value":"02:aa"}],"name":[{"value":"leaf0"}],
  "capability":[{"type":"Bridge","enabled":true}]}],
  "port":[{"id":[{"type":"ifname","value":"swp1"}],"descr":[{"value":"to n0"}],
  "auto-negotiation":[{"current":[{"value":"100GbaseCR4 - PMD"}]}]}]}]}]})";
  const auto seen = Read(kJson0);
  const auto same = Read(absl::StrCat(kLocal, "\n", kTwo));
  ASSERT_TRUE(seen.ok()) << seen.status();
  ASSERT_EQ(seen->links.size(), 1);
  EXPECT_EQ(seen->links[0].near, same->links[0].near);
  EXPECT_EQ(seen->links[0].far, same->links[0].far);
  EXPECT_EQ(seen->links[0].gbps, 100);
  EXPECT_EQ(seen->devices[1], same->devices[1]);
}

TEST(Lldp, OneNeighbourIsNoListAndNoneIsNothing) {
  const std::string one = absl::StrCat(kLocal, R"({"lldp": {"interface": {"rail0": {"via": "LLDP",
    "chassis": {"id": {"type": "mac", "value": "02:cc"}},
    "port": {"id": {"type": "ifname", "value": "p"}}}}}})");
  const auto seen = Read(one);
  ASSERT_TRUE(seen.ok()) << seen.status();
  ASSERT_EQ(seen->links.size(), 1);
  EXPECT_EQ(seen->devices[1], (SeenDevice{"chassis mac 02:cc", "", DeviceKind::kUnknown}));
  const auto none = Read(absl::StrCat(kLocal, R"({"lldp": {}})"));
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_TRUE(none->links.empty());
}

TEST(Lldp, AHostThatForwardsIsKnownByItsSystem) {
  const auto kind = [](const std::string& description) {
    const auto seen = Read(absl::StrCat(
        kLocal, absl::StrReplaceAll(kTwo, {{R"("value": "02:aa"},)",
                                            absl::StrCat(R"("value": "02:aa"}, "descr": ")",
                                                         description, R"(",)")}})));
    EXPECT_TRUE(seen.ok()) << seen.status();
    return seen->devices[1].kind;
  };
  EXPECT_EQ(kind("Debian GNU/Linux 12 (bookworm) Linux 6.1.0-13-amd64"), DeviceKind::kHost);
  EXPECT_EQ(kind("Ubuntu 24.04.1 LTS Linux 6.8.0-45-generic"), DeviceKind::kHost);
  EXPECT_EQ(kind("Cumulus Linux version 5.9.1 running on Mellanox SN5600"), DeviceKind::kForwarder);
  EXPECT_EQ(kind("SONiC Software Version: SONiC.202311 - Distribution: Debian 11"),
            DeviceKind::kForwarder);
  // As lldpd describes a system by default: its name, and what uname says.
  const std::string uname = " Linux 5.10.0-60.18.0.50.x86_64 #1 SMP Wed Mar 30 2022 x86_64";
  for (const char* host : {"openEuler 22.03 LTS", "Alibaba Cloud Linux 3 (Soaring Falcon)",
                           "Rocky Linux 9.3 (Blue Onyx)", "My Linux 7"}) {
    EXPECT_EQ(kind(host + uname), DeviceKind::kHost) << host;
  }
  for (const char* network :
       {"", "Cumulus Linux 4.4.0", "DENT OS 3.2", "Open Network Linux OS ONL-2.0.0", "VyOS 1.4",
        "Buildroot 2020.02", "SONiC", "Arista Networks EOS"}) {
    EXPECT_EQ(kind(network + uname), DeviceKind::kForwarder) << network;
  }
  EXPECT_EQ(kind("MyRouter on Linux 5.10 for #1 customers"), DeviceKind::kForwarder);
  // As it does where it must not send the version.
  for (const char* host :
       {"openEuler 22.03 LTS", "Anolis OS 8.8", "TencentOS Server 4.2", "Kylin Linux Advanced",
        "Microsoft Azure Linux 3.0", "CBL-Mariner/Linux", "Container-Optimized OS from Google",
        "NixOS 24.05 (Uakari)", "Arch Linux", "Flatcar Container Linux", "Talos (v1.8.0)"}) {
    EXPECT_EQ(kind(host), DeviceKind::kHost) << host;
  }
}

TEST(Lldp, WhatIsWrongIsNamed) {
  const auto error = [](const std::string& text) {
    const auto seen = Read(text);
    EXPECT_FALSE(seen.ok()) << text;
    return std::string(seen.status().message());
  };
  EXPECT_THAT(error(kTwo),
              HasSubstr("l.json:1: lldp: does not identify the host of these neighbours"));
  EXPECT_THAT(error(absl::StrCat(kLocal, kTwo, kTwo)), HasSubstr("does not identify the host"));
  EXPECT_THAT(error(absl::StrCat(kLocal, absl::StrReplaceAll(kTwo, {{"\"port\"", "\"prot\""}}))),
              HasSubstr("lldp.interface[0].rail0.port: is missing"));
  EXPECT_THAT(error(absl::StrCat(kLocal, R"({"lldq": 1})")), HasSubstr("is neither"));
}

// Anybody with a host on the network can describe it so. Each of these hid the whole fabric.
TEST(Lldp, AnOddTextSpoilsItselfAlone) {
  const auto with = [](const char* text, const std::string& odd) {
    return Read(absl::StrCat(kLocal, absl::StrReplaceAll(kTwo, {{text, odd}})));
  };
  const auto name = with("leaf0", R"(leaf\u001b]0;x\u202e)");
  ASSERT_TRUE(name.ok()) << name.status();
  EXPECT_EQ(name->devices[1].name, "leaf\\x1b]0;x\\u202e");
  EXPECT_EQ(name->links.size(), 2U);
  const auto no_name = with("leaf0", "");
  ASSERT_TRUE(no_name.ok()) << no_name.status();
  EXPECT_EQ(no_name->devices[1].name, "");
  EXPECT_EQ(no_name->links.size(), 2U);
  const auto long_name = with("leaf0", std::string(300, 'x'));
  ASSERT_TRUE(long_name.ok()) << long_name.status();
  EXPECT_EQ(long_name->devices[1].name.size(), 253U);
  for (const char* empty : {"swp1", "02:aa"}) {
    const auto other = with(empty, "");
    ASSERT_TRUE(other.ok()) << other.status();
    ASSERT_EQ(other->links.size(), 1U);
    EXPECT_EQ(other->links[0].far.port, "swp7");
  }
  const auto no_words = with("swp7", "");
  ASSERT_TRUE(no_words.ok()) << no_words.status();
  EXPECT_EQ(no_words->links[1].far.port, "02:bb");
}

}  // namespace
}  // namespace railhead::fabric
