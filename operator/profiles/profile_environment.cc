// SPDX-License-Identifier: Apache-2.0
#include "operator/profiles/profile_environment.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "operator/profiles/profile_settings.h"

namespace railhead::op {
namespace {

// Adds what the fabric implies for libraries without other settings.
//
// Over iWARP queue pairs are connected by librdmacm, which neither NCCL nor UCX does: there only
// our runtime has RDMA.
void AddFabricRules(const RailProfile& profile, ProfileEnvironment& result) {
  const bool fail = profile.require_rdma == RequireRdma::kFail;
  const bool own_plugin = profile.inject.own_plugin();
  const auto add = [&](const char* name, const char* value, absl::string_view why) {
    result.variables[name] = {value, absl::StrCat("fabric ", FabricName(profile.fabric), why)};
  };
  switch (profile.fabric) {
    case Fabric::kInfiniBand:
    case Fabric::kRoce:
      if (!fail) break;
      add("UCX_TLS", "^tcp", " and requireRDMA fail: no fallback to TCP");
      if (own_plugin) break;
      // CollNet and an injected plugin come with networks of their own, whose name NCCL_NET would
      // have to be.
      if (HasCollNet(profile) || profile.settings.contains("nccl.collnetPlugin")) break;
      if (profile.inject.plugin_image.empty()) {
        add("NCCL_NET", "IB", " and requireRDMA fail: no fallback to sockets");
      } else if (!profile.environment.contains("NCCL_NET")) {
        result.warnings.emplace_back(
            "spec.requireRDMA: is fail, but NCCL may fall back to sockets if the injected plugin "
            "finds no device; set spec.env[NCCL_NET] to the name of the plugin's network, such as "
            "IBext");
      }
      break;
    case Fabric::kIwarp:
      if (!fail) {
        add("NCCL_IB_DISABLE", "1", ": NCCL's own transport cannot connect over it");
      } else if (!own_plugin) {
        add("NCCL_NET", "IB", " and requireRDMA fail: no fallback to sockets");
      }
      if (profile.require_rdma == RequireRdma::kWarn && !own_plugin) {
        result.warnings.emplace_back(
            "spec.fabric: NCCL and UCX do not support iWARP and use TCP; only Railhead's runtime "
            "and its NCCL plugin (spec.inject.ncclPlugin) support it");
      }
      add("UCX_TLS", "^ib", ": UCX cannot connect over it");
      break;
    case Fabric::kEfa:
      add("FI_PROVIDER", "efa", ": libfabric must not use TCP");
      break;
    case Fabric::kTcp:
      add("NCCL_IB_DISABLE", "1", "");
      add("UCX_TLS", "^ib", "");
      add("RAILHEAD_TRANSPORT", "tcp", "");
      break;
  }
  if (own_plugin && fail) {
    result.variables["NCCL_NET"] = {
        kOwnNetwork, "spec.inject.ncclPlugin and requireRDMA fail: no other network"};
  }
  if (own_plugin && HasCollNet(profile)) {
    result.warnings.emplace_back(
        "spec.nccl.collnet: has no effect, because Railhead's NCCL plugin has no CollNet; name a "
        "plugin that has it in spec.inject.ncclPlugin");
  }
  result.variables["RAILHEAD_FALLBACK"] = {std::string(RequireRdmaName(profile.require_rdma)),
                                           "spec.requireRDMA"};
}

// Returns whether a setting requests GPUDirect.
bool AsksForGpuDirect(const std::string& name, const std::string& said) {
  return (name == "nccl.gdrLevel" && said != "LOC") || (name == "nccl.gdrRead" && said == "true");
}

void AddSettings(const RailProfile& profile, const FabricFacts& facts, ProfileEnvironment& result) {
  for (const ProfileSetting& setting : ProfileSettings()) {
    std::string from = setting.Name();
    auto said = profile.settings.find(from);
    if (said == profile.settings.end() && *setting.otherwise != '\0') {
      from = setting.otherwise;
      said = profile.settings.find(from);
    }
    if (said == profile.settings.end()) continue;
    if (AsksForGpuDirect(from, said->second) && facts.no_gpu_direct > 0) {
      // NCCL ignores it on a node without GPUDirect, so one such node does not take it from others.
      const bool nowhere = facts.gpu_direct == 0;
      result.warnings.push_back(absl::StrCat(
          "spec.", from, ": ", setting.variable,
          nowhere ? " is left out: " : " has no effect on some nodes: ", facts.no_gpu_direct,
          " of ", facts.gpu_direct + facts.no_gpu_direct,
          " nodes with GPUs have no GPUDirect RDMA, such as ", facts.no_gpu_direct_node,
          "; load nvidia_peermem there, or use a kernel with dma-buf"));
      if (nowhere) continue;
    }
    std::string value = VariableValue(setting, said->second);
    if (!value.empty()) {
      result.variables[setting.variable] = {std::move(value), absl::StrCat("spec.", from)};
    } else if (from == setting.Name()) {
      result.warnings.push_back(
          absl::StrCat("spec.", from, ": ", setting.variable,
                       " is left out: it does not support excluding names with '^'"));
    }
  }
}

// Warns of a profile for a fabric that no node has.
void CheckLinkLayers(const RailProfile& profile, const FabricFacts& facts,
                     ProfileEnvironment& result) {
  if (facts.link_layers.empty()) return;
  if (profile.fabric != Fabric::kInfiniBand && profile.fabric != Fabric::kRoce &&
      profile.fabric != Fabric::kIwarp) {
    return;
  }
  const char* layer = profile.fabric == Fabric::kInfiniBand ? "InfiniBand" : "Ethernet";
  if (facts.link_layers.count(layer) > 0 || facts.link_layers.count("mixed") > 0) return;
  result.warnings.push_back(absl::StrCat("spec.fabric: is ", FabricName(profile.fabric),
                                         ", but all nodes that report a link layer have ",
                                         facts.link_layers.begin()->first));
}

// Adds the paths of injected libraries, before the profile's own paths. Variables of frameworks
// that spec.env sets stay.
void AddLibraries(const RailProfile& profile, ProfileEnvironment& result) {
  for (auto& [variable, path] : SearchPaths(profile.inject)) {
    std::string value = path;
    if (const auto own = profile.environment.find(variable); own != profile.environment.end()) {
      absl::StrAppend(&value, ":", own->second);
    }
    result.variables[variable] = {std::move(value), "spec.inject"};
  }
  for (auto& [variable, value] : FrameworkVariables(profile.inject)) {
    result.variables.try_emplace(variable,
                                 ProfileVariable{value, "spec.inject.runtime.frameworks"});
  }
  if (std::string plugin = PluginName(profile.inject); !plugin.empty()) {
    // NCCL before 2.28 does not look for a profiler in the network plugin's file.
    if (profile.inject.own_plugin()) {
      result.variables.try_emplace("NCCL_PROFILER_PLUGIN",
                                   ProfileVariable{plugin, "spec.inject.ncclPlugin"});
    }
    result.variables["NCCL_NET_PLUGIN"] = {std::move(plugin), "spec.inject.ncclPlugin"};
  }
}

}  // namespace

ProfileEnvironment EnvironmentOf(const RailProfile& profile, const FabricFacts& facts) {
  ProfileEnvironment result;
  AddFabricRules(profile, result);
  AddSettings(profile, facts, result);
  for (const auto& [name, value] : profile.environment) {
    result.variables[name] = {value, absl::StrCat("spec.env[", name, "]")};
  }
  AddLibraries(profile, result);
  CheckLinkLayers(profile, facts, result);
  return result;
}

}  // namespace railhead::op
