// SPDX-License-Identifier: Apache-2.0
#include "operator/profiles/profile_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "operator/objects/variable_name.h"
#include "operator/profiles/profile_settings.h"

namespace railhead::op {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

using Values = std::map<std::string, std::string>;

Values ValuesOf(const ProfileEnvironment& environment) {
  Values values;
  for (const auto& [name, variable] : environment.variables) {
    EXPECT_FALSE(variable.reason.empty()) << name;
    values[name] = variable.value;
  }
  return values;
}

RailProfile Profile(Fabric fabric, RequireRdma require = RequireRdma::kWarn) {
  RailProfile profile;
  profile.name = "p";
  profile.fabric = fabric;
  profile.require_rdma = require;
  return profile;
}

TEST(EnvironmentOfTest, WhatEachFabricMeans) {
  const struct {
    Fabric fabric;
    RequireRdma require;
    Values values;
  } kCases[] = {
      {Fabric::kInfiniBand, RequireRdma::kAllow, {{"RAILHEAD_FALLBACK", "allow"}}},
      {Fabric::kInfiniBand, RequireRdma::kWarn, {{"RAILHEAD_FALLBACK", "warn"}}},
      {Fabric::kInfiniBand,
       RequireRdma::kFail,
       {{"RAILHEAD_FALLBACK", "fail"}, {"NCCL_NET", "IB"}, {"UCX_TLS", "^tcp"}}},
      {Fabric::kRoce, RequireRdma::kWarn, {{"RAILHEAD_FALLBACK", "warn"}}},
      {Fabric::kRoce,
       RequireRdma::kFail,
       {{"RAILHEAD_FALLBACK", "fail"}, {"NCCL_NET", "IB"}, {"UCX_TLS", "^tcp"}}},
      {Fabric::kIwarp,
       RequireRdma::kAllow,
       {{"RAILHEAD_FALLBACK", "allow"}, {"NCCL_IB_DISABLE", "1"}, {"UCX_TLS", "^ib"}}},
      {Fabric::kIwarp,
       RequireRdma::kFail,
       {{"RAILHEAD_FALLBACK", "fail"}, {"NCCL_NET", "IB"}, {"UCX_TLS", "^ib"}}},
      {Fabric::kEfa, RequireRdma::kWarn, {{"RAILHEAD_FALLBACK", "warn"}, {"FI_PROVIDER", "efa"}}},
      {Fabric::kTcp,
       RequireRdma::kAllow,
       {{"RAILHEAD_FALLBACK", "allow"},
        {"NCCL_IB_DISABLE", "1"},
        {"UCX_TLS", "^ib"},
        {"RAILHEAD_TRANSPORT", "tcp"}}},
  };
  for (const auto& expected : kCases) {
    const ProfileEnvironment environment =
        EnvironmentOf(Profile(expected.fabric, expected.require), {});
    EXPECT_EQ(ValuesOf(environment), expected.values) << FabricName(expected.fabric);
    EXPECT_THAT(environment.warnings, IsEmpty());
  }
  EXPECT_THAT(EnvironmentOf(Profile(Fabric::kIwarp), {}).warnings,
              ElementsAre(StartsWith("spec.fabric: NCCL and UCX do not support iWARP")));
}

TEST(EnvironmentOfTest, CollNetKeepsItsOwnNetwork) {
  RailProfile profile = Profile(Fabric::kInfiniBand, RequireRdma::kFail);
  profile.settings["nccl.collnet"] = "true";
  Values values = ValuesOf(EnvironmentOf(profile, {}));
  EXPECT_EQ(values.count("NCCL_NET"), 0U);
  EXPECT_EQ(values["NCCL_COLLNET_ENABLE"], "1");
  profile.settings["nccl.collnet"] = "false";
  values = ValuesOf(EnvironmentOf(profile, {}));
  EXPECT_EQ(values["NCCL_NET"], "IB");
  EXPECT_EQ(values["NCCL_COLLNET_ENABLE"], "0");
}

TEST(EnvironmentOfTest, SharpIsSetUpForNcclAndItsLibrary) {
  RailProfile profile = Profile(Fabric::kInfiniBand, RequireRdma::kFail);
  profile.settings = {{"nccl.collnet", "true"},
                      {"nccl.collnetMinNodes", "16"},
                      {"nccl.collnetPlugin", "sharp"},
                      {"nccl.sharpLogLevel", "info"}};
  EXPECT_EQ(ValuesOf(EnvironmentOf(profile, {})), (Values{{"RAILHEAD_FALLBACK", "fail"},
                                                          {"UCX_TLS", "^tcp"},
                                                          {"NCCL_COLLNET_ENABLE", "1"},
                                                          {"NCCL_COLLNET_NODE_THRESHOLD", "16"},
                                                          {"NCCL_NET_PLUGIN", "sharp"},
                                                          {"SHARP_COLL_LOG_LEVEL", "3"}}));
  // Pods that enable SHARP themselves use the plugin's network, too.
  profile.settings.erase("nccl.collnet");
  EXPECT_FALSE(ValuesOf(EnvironmentOf(profile, {})).contains("NCCL_NET"));
  profile.settings.erase("nccl.collnetPlugin");
  EXPECT_EQ(ValuesOf(EnvironmentOf(profile, {}))["NCCL_NET"], "IB");
}

TEST(EnvironmentOfTest, AnInjectedPluginKeepsItsOwnNetwork) {
  RailProfile profile = Profile(Fabric::kRoce, RequireRdma::kFail);
  profile.inject.plugin_image = "example.com/plugin:1";
  profile.inject.plugin_library = "/lib/libnccl-net.so";
  ProfileEnvironment environment = EnvironmentOf(profile, {});
  EXPECT_EQ(environment.variables.count("NCCL_NET"), 0U);
  EXPECT_THAT(environment.warnings, ElementsAre(StartsWith("spec.requireRDMA: is fail, but NCCL")));
  profile.environment["NCCL_NET"] = "IBext";
  environment = EnvironmentOf(profile, {});
  EXPECT_EQ(environment.variables["NCCL_NET"].value, "IBext");
  EXPECT_THAT(environment.warnings, IsEmpty());
}

// Over every fabric that it supports, and whatever else the profile wants.
TEST(EnvironmentOfTest, RailheadsOwnPluginIsNamed) {
  for (const Fabric fabric : {Fabric::kInfiniBand, Fabric::kRoce, Fabric::kIwarp, Fabric::kTcp}) {
    for (const RequireRdma require :
         {RequireRdma::kAllow, RequireRdma::kWarn, RequireRdma::kFail}) {
      if (fabric == Fabric::kTcp && require == RequireRdma::kFail) continue;  // refused
      RailProfile profile = Profile(fabric, require);
      profile.inject.plugin_image = "example.com/railhead/inject:1";
      const ProfileEnvironment environment = EnvironmentOf(profile, {});
      Values values = ValuesOf(environment);
      EXPECT_EQ(values["NCCL_NET_PLUGIN"], "/opt/railhead/nccl-net/libnccl-net-railhead.so");
      EXPECT_EQ(values["NCCL_PROFILER_PLUGIN"], values["NCCL_NET_PLUGIN"]);
      EXPECT_EQ(values.contains("NCCL_NET"), require == RequireRdma::kFail) << FabricName(fabric);
      if (require == RequireRdma::kFail) {
        EXPECT_EQ(values["NCCL_NET"], "Railhead");
        EXPECT_FALSE(values.contains("NCCL_IB_DISABLE"));
      }
      EXPECT_FALSE(values.contains("LD_LIBRARY_PATH"));
      EXPECT_THAT(environment.warnings, IsEmpty()) << FabricName(fabric);
      profile.environment = {{"NCCL_NET", "Railhead_v2"}, {"NCCL_PROFILER_PLUGIN", "none"}};
      values = ValuesOf(EnvironmentOf(profile, {}));
      EXPECT_EQ(values["NCCL_NET"], "Railhead_v2");
      EXPECT_EQ(values["NCCL_PROFILER_PLUGIN"], "none");
      profile.settings["nccl.collnet"] = "true";
      EXPECT_THAT(EnvironmentOf(profile, {}).warnings,
                  ElementsAre(StartsWith("spec.nccl.collnet: has no effect")));
    }
  }
}

TEST(EnvironmentOfTest, SettingsSayWhatEachLibraryTakes) {
  RailProfile profile = Profile(Fabric::kRoce, RequireRdma::kAllow);
  profile.settings = {{"nccl.gdrRead", "false"},
                      {"nccl.addressFamily", "IPv4"},
                      {"nccl.roceVersion", "2"},
                      {"nccl.gdrLevel", "PHB"},
                      {"nccl.socketInterface", "eth0,eth1"}};
  EXPECT_EQ(ValuesOf(EnvironmentOf(profile, {})),
            (Values{{"RAILHEAD_FALLBACK", "allow"},
                    {"NCCL_NET_GDR_READ", "0"},
                    {"NCCL_IB_ADDR_FAMILY", "AF_INET"},
                    {"NCCL_IB_ROCE_VERSION_NUM", "2"},
                    {"NCCL_NET_GDR_LEVEL", "PHB"},
                    {"NCCL_SOCKET_IFNAME", "=eth0,eth1"},
                    {"GLOO_SOCKET_IFNAME", "eth0,eth1"},
                    {"RAILHEAD_SOCKET_IFNAME", "eth0,eth1"}}));
}

TEST(EnvironmentOfTest, OneTrafficClassForAllUnlessTheySayOtherwise) {
  RailProfile profile = Profile(Fabric::kRoce, RequireRdma::kAllow);
  profile.settings = {{"nccl.trafficClass", "106"}, {"nccl.serviceLevel", "3"}};
  ProfileEnvironment environment = EnvironmentOf(profile, {});
  EXPECT_EQ(ValuesOf(environment), (Values{{"RAILHEAD_FALLBACK", "allow"},
                                           {"NCCL_IB_TC", "106"},
                                           {"UCX_IB_TRAFFIC_CLASS", "106"},
                                           {"RAILHEAD_IB_TC", "106"},
                                           {"NCCL_IB_SL", "3"},
                                           {"UCX_IB_SL", "3"},
                                           {"RAILHEAD_IB_SL", "3"}}));
  EXPECT_EQ(environment.variables["UCX_IB_SL"].reason, "spec.nccl.serviceLevel");
  profile.settings["ucx.trafficClass"] = "0";
  environment = EnvironmentOf(profile, {});
  EXPECT_EQ(environment.variables["UCX_IB_TRAFFIC_CLASS"].value, "0");
  EXPECT_EQ(environment.variables["RAILHEAD_IB_TC"].value, "106");
  // Nothing is taken over the other way.
  profile.settings = {{"ucx.trafficClass", "106"}, {"railhead.trafficClass", "4"}};
  EXPECT_EQ(EnvironmentOf(profile, {}).variables.count("NCCL_IB_TC"), 0U);
}

TEST(EnvironmentOfTest, OnlyNcclCanLeaveInterfacesOut) {
  RailProfile profile = Profile(Fabric::kRoce, RequireRdma::kAllow);
  profile.settings = {{"nccl.socketInterface", "^docker0,lo"}};
  ProfileEnvironment environment = EnvironmentOf(profile, {});
  EXPECT_EQ(ValuesOf(environment),
            (Values{{"RAILHEAD_FALLBACK", "allow"}, {"NCCL_SOCKET_IFNAME", "^=docker0,lo"}}));
  EXPECT_THAT(environment.warnings, IsEmpty());
  profile.settings = {{"gloo.socketInterface", "^lo"}};
  environment = EnvironmentOf(profile, {});
  EXPECT_EQ(environment.variables.count("GLOO_SOCKET_IFNAME"), 0U);
  EXPECT_THAT(environment.warnings, ElementsAre(StartsWith("spec.gloo.socketInterface: ")));
}

TEST(EnvironmentOfTest, GpuDirectUnlessNoNodeHasIt) {
  RailProfile profile = Profile(Fabric::kInfiniBand, RequireRdma::kAllow);
  profile.settings = {{"nccl.gdrLevel", "PXB"}, {"nccl.gdrRead", "true"}};
  const Values asked = {
      {"RAILHEAD_FALLBACK", "allow"}, {"NCCL_NET_GDR_LEVEL", "PXB"}, {"NCCL_NET_GDR_READ", "1"}};
  FabricFacts facts;  // nobody told anything
  EXPECT_EQ(ValuesOf(EnvironmentOf(profile, facts)), asked);
  facts.AddNode(
      "n0",
      {{"railhead.io/rails", "8"}, {"railhead.io/gpus", "8"}, {"railhead.io/gpudirect", "dmabuf"}});
  facts.AddNode("n1", {{"railhead.io/rails", "8"},
                       {"railhead.io/gpus", "8"},
                       {"railhead.io/gpudirect", "peermem"}});
  facts.AddNode("storage", {{"railhead.io/rails", "2"}, {"railhead.io/gpus", "0"}});
  EXPECT_EQ(ValuesOf(EnvironmentOf(profile, facts)), asked);
  // A node that starts, and whose GPU driver is not loaded yet, does not slow down the others.
  facts.AddNode("bad", {{"railhead.io/rails", "8"}, {"railhead.io/gpus", "8"}});
  ProfileEnvironment environment = EnvironmentOf(profile, facts);
  EXPECT_EQ(ValuesOf(environment), asked);
  EXPECT_THAT(environment.warnings,
              ElementsAre(StartsWith("spec.nccl.gdrLevel: NCCL_NET_GDR_LEVEL has no effect on some "
                                     "nodes: 1 of 3 nodes with GPUs have no GPUDirect RDMA, such "
                                     "as bad"),
                          StartsWith("spec.nccl.gdrRead: NCCL_NET_GDR_READ has no effect")));
  facts = FabricFacts();
  facts.AddNode("bad", {{"railhead.io/rails", "8"}, {"railhead.io/gpus", "8"}});
  environment = EnvironmentOf(profile, facts);
  EXPECT_EQ(ValuesOf(environment), (Values{{"RAILHEAD_FALLBACK", "allow"}}));
  EXPECT_THAT(environment.warnings,
              ElementsAre(StartsWith("spec.nccl.gdrLevel: NCCL_NET_GDR_LEVEL is left out: 1 of 1 "),
                          StartsWith("spec.nccl.gdrRead: NCCL_NET_GDR_READ is left out")));
  // To switch it off is right anywhere.
  profile.settings = {{"nccl.gdrLevel", "LOC"}, {"nccl.gdrRead", "false"}};
  environment = EnvironmentOf(profile, facts);
  EXPECT_EQ(environment.variables["NCCL_NET_GDR_LEVEL"].value, "LOC");
  EXPECT_EQ(environment.variables["NCCL_NET_GDR_READ"].value, "0");
  EXPECT_THAT(environment.warnings, IsEmpty());
}

TEST(EnvironmentOfTest, TellsOfAFabricThatNoNodeHas) {
  FabricFacts facts;
  facts.AddNode("n", {{"railhead.io/rails", "8"}, {"railhead.io/link-layer", "Ethernet"}});
  EXPECT_THAT(EnvironmentOf(Profile(Fabric::kInfiniBand), facts).warnings,
              ElementsAre(HasSubstr("is InfiniBand, but all nodes that report a link layer have "
                                    "Ethernet")));
  EXPECT_THAT(EnvironmentOf(Profile(Fabric::kRoce), facts).warnings, IsEmpty());
  EXPECT_THAT(EnvironmentOf(Profile(Fabric::kEfa), facts).warnings, IsEmpty());
  facts.AddNode("m", {{"railhead.io/rails", "8"}, {"railhead.io/link-layer", "mixed"}});
  EXPECT_THAT(EnvironmentOf(Profile(Fabric::kInfiniBand), facts).warnings, IsEmpty());
}

TEST(EnvironmentOfTest, TheFreeVariablesWinOverTheRules) {
  RailProfile profile = Profile(Fabric::kInfiniBand, RequireRdma::kFail);
  profile.environment = {{"NCCL_NET", "IBext_v10"}, {"NCCL_ALGO", "Ring"}};
  ProfileEnvironment environment = EnvironmentOf(profile, {});
  EXPECT_EQ(environment.variables["NCCL_NET"].value, "IBext_v10");
  EXPECT_EQ(environment.variables["NCCL_NET"].reason, "spec.env[NCCL_NET]");
  EXPECT_EQ(environment.variables["NCCL_ALGO"].value, "Ring");
}

// The table itself.

TEST(EnvironmentOfTest, InjectedLibrariesAreFoundBeforeTheProfilesOwn) {
  RailProfile profile = Profile(Fabric::kEfa);
  EXPECT_EQ(EnvironmentOf(profile, {}).variables.count("LD_LIBRARY_PATH"), 0U);
  profile.inject = {"a", "b", "/l/libnccl-net-ofi.so"};
  Values values = ValuesOf(EnvironmentOf(profile, {}));
  EXPECT_EQ(values["LD_LIBRARY_PATH"], "/opt/railhead/runtime:/opt/railhead/nccl-net");
  EXPECT_EQ(values["NCCL_NET_PLUGIN"], "ofi");
  profile.environment = {{"LD_LIBRARY_PATH", "/mine"}};
  profile.inject = {"", "b", "/l/libnccl-net.so"};
  values = ValuesOf(EnvironmentOf(profile, {}));
  EXPECT_EQ(values["LD_LIBRARY_PATH"], "/opt/railhead/nccl-net:/mine");
  EXPECT_EQ(values.count("NCCL_NET_PLUGIN"), 0U);
}

TEST(EnvironmentOfTest, InjectedFrameworksAreToldUnlessTheProfileSaysOtherwise) {
  RailProfile profile = Profile(Fabric::kRoce);
  profile.inject = {"a", "", "", {"torch", "jax"}};
  profile.environment = {{"PYTHONPATH", "/mine"}, {"JAX_CPU_COLLECTIVES_IMPLEMENTATION", "gloo"}};
  Values values = ValuesOf(EnvironmentOf(profile, {}));
  EXPECT_EQ(values["PYTHONPATH"], "/opt/railhead/runtime/python:/mine");
  EXPECT_EQ(values["JAX_CPU_COLLECTIVES_IMPLEMENTATION"], "gloo");
  EXPECT_EQ(values["MPITRAMPOLINE_LIB"], "/opt/railhead/runtime/railhead-mpi/libmpi.so.40");
  EXPECT_EQ(values.count("LD_LIBRARY_PATH"), 0U);
}

TEST(ProfileSettingsTest, NamesAndVariablesAreUniqueAndOurs) {
  std::set<std::string> names;
  std::set<std::string> variables;
  for (const ProfileSetting& setting : ProfileSettings()) {
    EXPECT_TRUE(names.insert(setting.Name()).second) << setting.Name();
    EXPECT_TRUE(variables.insert(setting.variable).second) << setting.variable;
    EXPECT_TRUE(IsVariableName(setting.variable));
    EXPECT_FALSE(IsComputedVariable(setting.variable)) << setting.variable;
    EXPECT_FALSE(absl::StrContains(setting.variable, "GID_INDEX"));
  }
  for (const ProfileSetting& setting : ProfileSettings()) {
    EXPECT_TRUE(*setting.otherwise == '\0' || names.count(setting.otherwise) == 1)
        << setting.Name();
  }
}

// A variable of ours that the runtime does not know would do nothing, silently.
TEST(ProfileSettingsTest, TheRuntimeKnowsOurVariables) {
  std::ifstream file(RAILHEAD_SOURCE_DIR "/runtime/config/env.cc");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  int ours = 0;
  for (const ProfileSetting& setting : ProfileSettings()) {
    if (!absl::StartsWith(setting.variable, "RAILHEAD_")) continue;
    EXPECT_THAT(text, HasSubstr(absl::StrCat("\"", setting.variable, "\"")));
    ++ours;
  }
  EXPECT_EQ(ours, 9);
  EXPECT_THAT(text, HasSubstr("\"RAILHEAD_FALLBACK\""));
}

}  // namespace
}  // namespace railhead::op
