// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/config/config_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "device-plugin/config/config.h"
#include "device-plugin/config/selector.h"

namespace railhead::device_plugin {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

std::string MessageFor(absl::string_view yaml) {
  const absl::Status status = ParseAgentConfig(yaml, "agent.yaml").status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << yaml.substr(0, 200) << ": " << status;
  return std::string(status.message());
}

TEST(ParseAgentConfig, EveryField) {
  const absl::StatusOr<AgentConfig> config = ParseAgentConfig(R"(
resources:
- name: rdma/hca
  selectors:
  - names: ["mlx5_*", "rxe?"]
    vendors: [15B3, "8086"]
    devices: ["1021"]
    drivers: [mlx5_core]
    interfaces: ["eth*"]
    linkLayers: [InfiniBand, Ethernet]
    pciAddresses: ["0000:18:00.0", "0000:AB:*", "10000:01:00.0"]
    rails: [0, 63]
    numaNodes: [0, 65535]
    roles: [vf, pf]
  - {vendors: ["14e4"]}
  slots: 128
- name: example.com/rest
- name: rdma/vf
  selectors: [{roles: [vf]}]
  perRail: true
  deviceIds: pciAddress
  network: moved
  moveInterfaces: true
- {name: rdma/flat, selectors: [{rails: [9]}], network: attached, deviceIds: name, perRail: false}
- {name: rdma/all, selectors: [{rails: [8]}], network: host, allHcas: true, slots: 8}
rails:
- {rail: 1, interface: eth2}
- {rail: 0, pciAddress: "0000:AB:00.0"}
- {rail: 7, name: rxe0}
gpuVendors: ["8086", 1ED5]
ncclTopology: true
)",
                                                              "agent.yaml");
  ASSERT_TRUE(config.ok()) << config.status();
  AgentConfig expected;
  expected.resources = {
      {.name = "rdma/hca",
       .selectors = {{.names = {"mlx5_*", "rxe?"},
                      .vendors = {"15b3", "8086"},
                      .devices = {"1021"},
                      .drivers = {"mlx5_core"},
                      .interfaces = {"eth*"},
                      .link_layers = {"InfiniBand", "Ethernet"},
                      .pci_addresses = {"0000:18:00.0", "0000:ab:*", "10000:01:00.0"},
                      .rails = {0, 63},
                      .numa_nodes = {0, 65535},
                      .roles = {"vf", "pf"}},
                     {.vendors = {"14e4"}}},
       .slots = 128},
      {.name = "example.com/rest"},
      {.name = "rdma/vf",
       .selectors = {{.roles = {"vf"}}},
       .per_rail = true,
       .device_ids = DeviceIds::kPciAddress,
       .network = fabric::PodNetwork::kMoved,
       .move_interfaces = true},
      {.name = "rdma/flat",
       .selectors = {{.rails = {9}}},
       .network = fabric::PodNetwork::kAttached},
      {.name = "rdma/all", .selectors = {{.rails = {8}}}, .slots = 8, .all_hcas = true}};
  expected.rails = {{.rail = 1, .interface = "eth2"},
                    {.rail = 0, .pci_address = "0000:ab:00.0"},
                    {.rail = 7, .name = "rxe0"}};
  expected.gpu_vendors = {"8086", "1ed5"};
  expected.nccl_topology = true;
  EXPECT_EQ(*config, expected);
}

TEST(ParseAgentConfig, DefaultsForWhatIsLeftOut) {
  ASSERT_EQ(AgentConfig().resources.size(), 1U);
  EXPECT_EQ(AgentConfig().resources[0].name, "rdma/hca");
  EXPECT_THAT(AgentConfig().resources[0].selectors, IsEmpty());
  EXPECT_EQ(AgentConfig().resources[0].slots, 1);
  for (const char* text :
       {"", "\n", "# nothing\n", "---\n", "---\n...\n", "~", "{}", "rails: []\ngpuVendors: []\n"}) {
    const absl::StatusOr<AgentConfig> config = ParseAgentConfig(text, "agent.yaml");
    ASSERT_TRUE(config.ok()) << text << config.status();
    EXPECT_EQ(*config, AgentConfig()) << text;
  }
}

TEST(ParseAgentConfig, TakesJsonWindowsLinesAndAliases) {
  const absl::StatusOr<AgentConfig> yaml = ParseAgentConfig(
      "resources:\r\n- name: rdma/a\r\n  selectors: &s\r\n  - {vendors: [\"15b3\"]}\r\n"
      "- name: rdma/b\r\n  selectors: *s\r\n",
      "agent.yaml");
  const absl::StatusOr<AgentConfig> json =
      ParseAgentConfig(R"({"resources":[{"name":"rdma/a","selectors":[{"vendors":["15b3"]}]},)"
                       R"({"name":"rdma/b","selectors":[{"vendors":["15b3"]}]}]})",
                       "agent.json");
  ASSERT_TRUE(yaml.ok()) << yaml.status();
  ASSERT_TRUE(json.ok()) << json.status();
  EXPECT_EQ(*yaml, *json);
}

TEST(ParseAgentConfig, RefusalsSayWhereWhatAndHowToMendIt) {
  const struct {
    const char* yaml;
    const char* message;  // after "agent.yaml:"
  } cases[] = {
      // The shape of the document.
      {"[]",
       "1: the document: must be a mapping, not a list; its fields are resources, rails, "
       "gpuVendors and ncclTopology"},
      {"hello",
       "1: the document: must be a mapping, not hello; its fields are resources, rails, "
       "gpuVendors and ncclTopology"},
      {"rails: []\nresuorces: []\n",
       "2: resuorces: this field is not known; did you mean resources?"},
      {"gpus: []\n",
       "1: gpus: this field is not known; the fields here are resources, rails, gpuVendors "
       "and ncclTopology"},
      {"rails: []\n\nrails: []\n", "3: rails: appears a second time; keep one of the two"},
      {"rails: []\n\"rails\": []\n", "2: rails: appears a second time; keep one of the two"},
      {"? [rails]\n: []\n", "1: the document: has a field whose name is a list"},
      {"~: []\n", "1: the document: has a field whose name is an empty value"},
      {"<<: {}\n",
       "1: <<: this field is not known; the fields here are resources, rails, gpuVendors "
       "and ncclTopology"},
      {"a\\b: 1\n",
       "1: a\\\\b: this field is not known; the fields here are resources, rails, gpuVendors "
       "and ncclTopology"},
      {"rails: []\n---\nresources: []\n",
       "2: the document: a second document begins; keep one, and remove what follows its ---"},
      {"---\n---\nrails: []\n",
       "2: the document: a second document begins; keep one, and remove what follows its ---"},
      {"rails: [\n",
       "2: the document: is not YAML: end of sequence flow not found; check the indentation, and "
       "put "
       "texts with special characters in quotes"},
      {"rails: *r\n",
       "1: the document: is not YAML: the referenced anchor is not defined; check the "
       "indentation, and put texts with special characters in quotes"},
      {"rails: []\nx: \x04\n",
       "2: the document: holds the control character 0x04; remove it, and save the text as UTF-8"},
      // Lists.
      {"resources: rdma/hca\n",
       "1: resources: must be a list, not rdma/hca; write each entry on a separate line after a "
       "dash, or all in [ ]"},
      {"resources:\n  name: rdma/hca\n",
       "2: resources: must be a list, not a mapping; write each entry on a separate line after a "
       "dash, or all in [ ]"},
      {"rails:\n\nresources: [{name: a/b}]\n",
       "1: rails: has no value; give it one, or leave the field out"},
      {"rails: [~]\n",
       "1: rails[0]: must be a mapping, not an empty value; its fields are rail, interface, "
       "pciAddress and name"},
      {"resources: []\n",
       "1: resources: must have at least one entry; leave the field out to take the default"},
      {"resources:\n- name: a/b\n  selectors: []\n",
       "3: resources[0].selectors: must have at least one entry; leave the field out to take the "
       "default"},
      {"resources:\n- name: a/b\n  selectors:\n  - vendors: []\n",
       "4: resources[0].selectors[0].vendors: must have at least one entry; leave the field out to "
       "take the default"},
      // Resources.
      {"resources: [rdma/hca]\n",
       "1: resources[0]: must be a mapping, not rdma/hca; its fields are name, selectors, slots, "
       "perRail, allHcas, deviceIds, network and moveInterfaces"},
      {"resources:\n- slots: 2\n", "2: resources[0]: has no name; add one, such as name: rdma/hca"},
      {"resources:\n- name: rdma/hca\n  slot: 2\n",
       "3: resources[0].slot: this field is not known; did you mean slots?"},
      {"resources:\n- name: hca\n",
       "2: resources[0].name: \"hca\" is not a name that kubelet accepts; write domain/name, such "
       "as rdma/hca, and not in kubernetes.io"},
      {"resources:\n- name: [rdma/hca]\n",
       "2: resources[0].name: must be text, not a list; put it in quotes"},
      {"resources:\n- name: a/b\n  selectors: [{vendors: [\"15b3\"]}]\n- name: a/b\n",
       "4: resources[1].name: \"a/b\" is already the name of resources[0]; give each resource a "
       "unique name"},
      {"resources:\n- name: a/b\n- name: a/c\n",
       "3: resources[1]: has no selectors, like resources[0]; only one resource can get the "
       "remaining HCAs, so add selectors to one of them"},
      {"resources: [{name: a/b, slots: 0}]\n",
       "1: resources[0].slots: must be a whole number from 1 to 128, not 0; it is the number of "
       "containers that can share each HCA"},
      {"resources: [{name: a/b, slots: 129}]\n",
       "1: resources[0].slots: must be a whole number from 1 to 128, not 129; it is the number of "
       "containers that can share each HCA"},
      {"resources: [{name: a/b, slots: \"4\"}]\n",
       "1: resources[0].slots: must be a whole number from 1 to 128, not \"4\"; write it without "
       "quotes"},
      {"resources: [{name: a/b, slots: 04}]\n",
       "1: resources[0].slots: must be a whole number from 1 to 128, not 04; it is the number of "
       "containers that can share each HCA"},
      {"resources: [{name: a/b, slots: 4294967297}]\n",
       "1: resources[0].slots: must be a whole number from 1 to 128, not 4294967297; it is the "
       "number of containers that can share each HCA"},
      {"resources: [{name: a/b, slots: 1.0}]\n",
       "1: resources[0].slots: must be a whole number from 1 to 128, not 1.0; it is the number of "
       "containers that can share each HCA"},
      {"resources: [{name: a/b, perRail: 1}]\n",
       "1: resources[0].perRail: must be true or false, not 1"},
      {"resources: [{name: a/b23456789b123456789b123456789b123456789b123456789b123456789bc, "
       "perRail: true}]\n",
       "1: resources[0].perRail: offers names such as "
       "\"a/b23456789b123456789b123456789b123456789b123456789b12345678...\", which kubelet does "
       "not accept; give the resource a shorter name"},
      {"resources:\n- {name: a/b, perRail: true}\n- {name: a/b-7, selectors: [{rails: [7]}]}\n",
       "3: resources[1].name: \"a/b-7\" is already offered by resources[0]; give each resource a "
       "unique name"},
      {"resources: [{name: a/b, deviceIds: pci}]\n",
       "1: resources[0].deviceIds: \"pci\" is not a form of ids; write name or pciAddress"},
      {"resources: [{name: a/b, deviceIds: pciAddress, slots: 2}]\n",
       "1: resources[0].deviceIds: a PCI address cannot identify a share of an HCA; remove slots "
       "or deviceIds"},
      {"resources: [{name: a/b, allHcas: true, perRail: true}]\n",
       "1: resources[0].allHcas: one device cannot be all HCAs and one rail; remove allHcas or "
       "perRail"},
      {"resources: [{name: a/b, deviceIds: pciAddress, allHcas: true}]\n",
       "1: resources[0].deviceIds: a PCI address identifies one HCA; remove allHcas or deviceIds"},
      {"resources: [{name: a/b, network: hosts}]\n",
       "1: resources[0].network: \"hosts\" is not a network; did you mean host?"},
      {"resources: [{name: a/b, moveInterfaces: true}]\n",
       "1: resources[0].moveInterfaces: an interface can be in only one pod at a time, and then "
       "leaves the host; write network: moved, and remove slots"},
      // Rails.
      {"rails: [{interface: eth2}]\n", "1: rails[0]: has no rail; add its number, such as rail: 0"},
      {"rails: [{rail: -1, name: rxe0}]\n",
       "1: rails[0].rail: must be a whole number from 0 to 63, not -1; it is the rail's position "
       "on the node"},
      {"rails: [{rail: 64, name: rxe0}]\n",
       "1: rails[0].rail: must be a whole number from 0 to 63, not 64; it is the rail's position "
       "on the node"},
      {"rails: [{rail: 0}]\n",
       "1: rails[0]: does not identify an HCA; give exactly one of interface, pciAddress "
       "and "
       "name"},
      {"rails: [{rail: 0, name: rxe0, interface: eth2}]\n",
       "1: rails[0]: identifies the HCA more than once; give exactly one of interface, "
       "pciAddress and name"},
      {"rails:\n- {rail: 0, name: rxe0}\n- {rail: 0, name: rxe1}\n",
       "3: rails[1].rail: 0 is already the rail of rails[0]; give each entry a unique rail"},
      {"rails:\n- {rail: 0, interface: eth2}\n- {rail: 1, interface: eth2}\n",
       "3: rails[1].interface: \"eth2\" already has a rail by rails[0]; remove one of the two "
       "entries"},
      {"rails:\n- {rail: 0, pciAddress: \"0000:0A:00.0\"}\n- {rail: 1, pciAddress: "
       "\"0000:0a:00.0\"}\n",
       "3: rails[1].pciAddress: \"0000:0a:00.0\" already has a rail by rails[0]; remove one of the "
       "two entries"},
      {"rails: [{rail: 0, name: rxe*}]\n",
       "1: rails[0].name: \"rxe*\" is not a name; use letters, digits, _ - . and : (no wildcards "
       "here)"},
      {"rails: [{rail: 0, interface: \"\"}]\n",
       "1: rails[0].interface: \"\" is not a name; use letters, digits, _ - . and : (no wildcards "
       "here)"},
      {"rails: [{rail: 0, pciAddress: \"0000:18:*\"}]\n",
       "1: rails[0].pciAddress: \"0000:18:*\" is not a PCI address; write "
       "domain:bus:device.function as lspci -D prints it, such as \"0000:18:00.0\""},
      // GPU vendors.
      {"gpuVendors: [8086]\n",
       "1: gpuVendors[0]: must be text, but without quotes 8086 is a number; write \"8086\""},
      {"gpuVendors: [\"0x8086\"]\n",
       "1: gpuVendors[0]: \"0x8086\" is not four hex digits; write it as lspci -n prints it, such "
       "as "
       "\"8086\""},
      // The switch.
      {"ncclTopology: yes\n", "1: ncclTopology: must be true or false, not yes"},
      {"ncclTopology: \"true\"\n", "1: ncclTopology: must be true or false, not \"true\""},
      {"ncclTopology: [true]\n", "1: ncclTopology: must be true or false, not a list"},
  };
  for (const auto& test : cases) {
    EXPECT_EQ(MessageFor(test.yaml), absl::StrCat("agent.yaml:", test.message)) << test.yaml;
  }
}

TEST(ParseAgentConfig, RefusalsInASelector) {
  const struct {
    const char* fields;
    const char* message;  // after the selector's path
  } cases[] = {
      {"{}",
       ": has no fields, so it would match every HCA; add a field, or omit selectors to get every "
       "HCA that no other resource selects"},
      {"mlx5_0",
       ": must be a mapping, not mlx5_0; its fields are names, vendors, devices, drivers, "
       "interfaces, linkLayers, pciAddresses, rails, numaNodes and roles"},
      {"{vendor: [\"15b3\"]}", ".vendor: this field is not known; did you mean vendors?"},
      {"{vendors: \"15b3\"}",
       ".vendors: must be a list, not \"15b3\"; write each entry on a separate line after a "
       "dash, "
       "or all in [ ]"},
      {"{vendors: [15b]}",
       ".vendors[0]: \"15b\" is not four hex digits; write it as lspci -n prints it, such as "
       "\"15b3\""},
      {"{vendors: [\"15b3\", 15e3]}",
       ".vendors[1]: must be text, but without quotes 15e3 is a number; write \"15e3\""},
      {"{devices: [102g]}",
       ".devices[0]: \"102g\" is not four hex digits; write it as lspci -n prints it, such as "
       "\"1021\""},
      {"{devices: [1021]}",
       ".devices[0]: must be text, but without quotes 1021 is a number; write \"1021\""},
      {"{devices: [0x1021]}",
       ".devices[0]: must be text, but without quotes 0x1021 is a number; write \"0x1021\""},
      {"{drivers: [\"mlx5*\"]}",
       ".drivers[0]: \"mlx5*\" is not a name; use letters, digits, _ - . and : (no wildcards "
       "here)"},
      {"{drivers: [true]}",
       ".drivers[0]: must be text, but without quotes true is a boolean; write \"true\""},
      {"{names: [\"mlx5_[0-3]\"]}",
       ".names[0]: \"mlx5_[0-3]\" is not a name; use letters, digits, _ - . and :, with * for any "
       "text and ? for any one character"},
      {"{names: [~]}", ".names[0]: must be text, not an empty value; put it in quotes"},
      {"{names: [.inf]}",
       ".names[0]: must be text, but without quotes .inf is a number; write \".inf\""},
      {"{interfaces: [\"\"]}",
       ".interfaces[0]: \"\" is not a name; use letters, digits, _ - . and :, with * for any text "
       "and ? for any one character"},
      {"{linkLayers: [infiniband]}",
       ".linkLayers[0]: \"infiniband\" is not a link layer; did you mean InfiniBand?"},
      {"{linkLayers: [RoCE]}",
       ".linkLayers[0]: \"RoCE\" is not a link layer; write InfiniBand or Ethernet"},
      {"{pciAddresses: [\"18:00.0\"]}",
       ".pciAddresses[0]: \"18:00.0\" is not a PCI address; write domain:bus:device.function as "
       "lspci -D prints it, such as \"0000:18:00.0\" or \"0000:18:*\""},
      {"{pciAddresses: [\"mlx*\"]}",
       ".pciAddresses[0]: \"mlx*\" is not a PCI address; write domain:bus:device.function as lspci "
       "-D prints it, such as \"0000:18:00.0\" or \"0000:18:*\""},
      {"{rails: [64]}",
       ".rails[0]: must be a whole number from 0 to 63, not 64; it is the rail's position on the "
       "node"},
      {"{roles: [switchdev-pf]}",
       ".roles[0]: \"switchdev-pf\" is not a role that can be a rail; write pf, bond, vf, sf or "
       "software"},
      {"{roles: [vfs]}", ".roles[0]: \"vfs\" is not a role that can be a rail; did you mean vf?"},
      {"{numaNodes: [-1]}",
       ".numaNodes[0]: must be a whole number from 0 to 65535, not -1; lscpu lists the NUMA nodes"},
  };
  for (const auto& test : cases) {
    const std::string yaml = absl::StrCat(
        "resources:\n- name: a/b\n  selectors:\n  - rails: [0]\n  - ", test.fields, "\n");
    EXPECT_EQ(MessageFor(yaml),
              absl::StrCat("agent.yaml:5: resources[0].selectors[1]", test.message));
  }
}

TEST(ParseAgentConfig, SuggestsWithinTwoEdits) {
  for (const char* name : {"slot", "sloots", "slto", "Slots", "slo", "slotsxx"}) {
    EXPECT_THAT(MessageFor(absl::StrCat("resources: [{name: a/b, ", name, ": 1}]")),
                HasSubstr("did you mean slots?"))
        << name;
  }
  for (const std::string& name :
       {std::string("sl"), std::string("slotsxxx"), std::string("SLOTS"), std::string(1000, 's')}) {
    EXPECT_THAT(MessageFor(absl::StrCat("resources: [{name: a/b, \"", name, "\": 1}]")),
                HasSubstr("the fields here are name, selectors, slots, perRail"))
        << name.substr(0, 20);
  }
}

TEST(ParseAgentConfig, MessagesShowHostileTextOnOneShortLine) {
  const std::string message =
      MessageFor("gpuVendors: [\"a\\n\\e[31m" + std::string(100000, 'x') + "\"]");
  EXPECT_THAT(message, StartsWith("agent.yaml:1: gpuVendors[0]: \"a\\n\\033[31mxxx"));
  EXPECT_THAT(message, HasSubstr("...\" is not four hex digits"));
  EXPECT_LT(message.size(), 300U);
}

TEST(ParseAgentConfig, TheTextMustNotBeTooLong) {
  std::string text = "rails: []\n#";
  text.resize(size_t{1} << 20, 'x');
  EXPECT_TRUE(ParseAgentConfig(text, "agent.yaml").ok());
  EXPECT_EQ(MessageFor(text + "x"),
            "agent.yaml: the document: has more than the 1048576 bytes that are allowed");
}

TEST(ParseAgentConfig, AliasesMustNotGrowWithoutBound) {
  const auto bomb = [](int entries, int aliases) {
    std::string text = "resources:\n- name: a/b\n  selectors:\n  - rails: &r [0";
    for (int i = 1; i < entries; ++i) text += ",0";
    text += "]\n";
    for (int i = 0; i < aliases; ++i) text += "  - {rails: *r}\n";
    return text;
  };
  EXPECT_TRUE(ParseAgentConfig(bomb(300, 300), "agent.yaml").ok());
  EXPECT_THAT(MessageFor(bomb(1000, 1000)),
              HasSubstr("the document holds more than 100000 values, counting what an alias (*) "
                        "stands for each time; write less"));
}

TEST(ParseAgentConfig, ALoopOfAliasesEnds) {
  for (const char* loop : {"rails: &r [*r]", "&d {resources: *d}"}) {
    EXPECT_THAT(MessageFor(loop),
                HasSubstr("an alias (*) stands for a value that holds the alias"));
  }
}

TEST(ParseAgentConfig, DeepNestingEnds) {
  for (const char* open : {"[", "{", "- ", "? ", "[{a: ", "!!x ", "&a "}) {
    std::string text;
    while (text.size() < 200000) text += open;
    EXPECT_THAT(MessageFor(text), StartsWith("agent.yaml:1: ")) << open;
  }
  EXPECT_EQ(MessageFor("gpuVendors:\n- " + std::string(1000, '[')),
            "agent.yaml:2: the document: nests hundreds of levels deep; look for brackets that are "
            "not closed");
}

// Any damage to a good text is accepted or refused with its place.
TEST(ParseAgentConfig, RandomDamage) {
  const std::string good = R"(resources:
- name: rdma/hca
  selectors: &s
  - {names: ["mlx5_*"], vendors: ["15b3"], linkLayers: [InfiniBand], rails: [0, 1]}
  slots: 4
- {name: rdma/rest, selectors: *s}
rails:
- {rail: 0, interface: eth2}
- {rail: 1, pciAddress: "0000:18:00.0"}
gpuVendors: ["8086"]
)";
  std::mt19937 random(3);
  int accepted = 0;
  for (int round = 0; round < 5000; ++round) {
    std::string text = good;
    for (unsigned changes = 1 + random() % 3; changes > 0; --changes) {
      const size_t at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.erase(at, 1 + random() % 8);
          break;
        default:
          text.insert(at, text.substr(random() % text.size(), random() % 16));
      }
    }
    const absl::StatusOr<AgentConfig> config = ParseAgentConfig(text, "agent.yaml");
    if (config.ok()) {
      ++accepted;
      continue;
    }
    ASSERT_TRUE(absl::IsInvalidArgument(config.status()));
    ASSERT_THAT(std::string(config.status().message()),
                ::testing::MatchesRegex("agent.yaml:[1-9].*"))
        << text;
  }
  EXPECT_GT(accepted, 100);
}

// The fields of the schema's object are those that the parser knows, in its order.
TEST(ConfigSchema, NamesTheParsersFields) {
  std::ifstream file(RAILHEAD_CONFIG_SCHEMA);
  const auto schema = nlohmann::ordered_json::parse(file);
  const auto fields = [](const nlohmann::ordered_json& object) {
    EXPECT_EQ(object.at("additionalProperties"), false);
    std::vector<std::string> names;
    for (const auto& [name, value] : object.at("properties").items()) {
      EXPECT_TRUE(value.contains("description")) << name;
      names.push_back(name);
    }
    const std::string last = names.back();
    names.pop_back();
    return absl::StrCat("its fields are ", absl::StrJoin(names, ", "), " and ", last);
  };
  EXPECT_THAT(MessageFor("[]"), HasSubstr(fields(schema)));
  const auto& definitions = schema.at("$defs");
  EXPECT_THAT(MessageFor("resources: [[]]"), HasSubstr(fields(definitions.at("resource"))));
  EXPECT_THAT(MessageFor("resources: [{name: a/b, selectors: [[]]}]"),
              HasSubstr(fields(definitions.at("selector"))));
  EXPECT_THAT(MessageFor("rails: [[]]"), HasSubstr(fields(definitions.at("railEntry"))));
}

TEST(LoadAgentConfig, ReadsARegularFileOnly) {
  std::string folder = ::testing::TempDir() + "/config-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string path = folder + "/agent.yaml";
  std::ofstream(path) << "gpuVendors: [\"8086\"]\n";
  const absl::StatusOr<AgentConfig> config = LoadAgentConfig(path);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_THAT(config->gpu_vendors, ElementsAre("8086"));

  std::ofstream(path) << "gpuVendors: 8086\n";
  EXPECT_THAT(std::string(LoadAgentConfig(path).status().message()),
              StartsWith(path + ":1: gpuVendors: must be a list"));

  std::ofstream(path) << std::string((size_t{1} << 20) + 1, '#');
  EXPECT_EQ(LoadAgentConfig(path).status().message(),
            path + " has more than the 1048576 bytes that are allowed");

  EXPECT_TRUE(absl::IsNotFound(LoadAgentConfig(folder + "/missing.yaml").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(LoadAgentConfig(folder).status()));
  const std::string pipe = folder + "/pipe.yaml";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(LoadAgentConfig(pipe).status().message(), pipe + " is not a regular file");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace railhead::device_plugin
