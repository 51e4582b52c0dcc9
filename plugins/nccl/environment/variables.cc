// SPDX-License-Identifier: Apache-2.0
#include "plugins/nccl/environment/variables.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "fabric/nccl_ib_hca.h"
#include "plugins/nccl/name.h"

namespace railhead::nccl {
namespace {

constexpr char kRailsFile[] = "rails.json";
// NCCL cuts longer names of a library, and takes commas for the end of one.
constexpr size_t kLongestLibrary = 254;

class Collector {
 public:
  explicit Collector(config::Lookup own) : own_(own) {}

  bool IsOwn(const char* name) const { return own_(name).has_value(); }
  // Returns whether the process has set a setting of ours.
  bool IsSet(const char* setting) const { return !config::ValueOf(own_, setting).empty(); }

  void Add(const char* name, std::string value, std::string reason) {
    if (!IsOwn(name)) variables_.push_back({name, std::move(value), std::move(reason)});
  }

  std::vector<Variable> Take() { return std::move(variables_); }

 private:
  config::Lookup own_;
  std::vector<Variable> variables_;
};

void AddDevices(const RailFacts& facts, const config::Settings& settings, Collector& into) {
  if (settings.transport == config::TransportChoice::kTcp) {
    into.Add("NCCL_IB_DISABLE", "1", "RAILHEAD_TRANSPORT");
    return;
  }
  if (facts.rails.empty() || into.IsOwn("NCCL_IB_HCA")) return;
  into.Add("NCCL_IB_HCA", fabric::NcclIbHca(facts.rails), kRailsFile);
  // An index would override these three, by which NCCL looks for one itself.
  if (!facts.gid_index.has_value() || into.IsOwn("NCCL_IB_ADDR_FAMILY") ||
      into.IsOwn("NCCL_IB_ADDR_RANGE") || into.IsOwn("NCCL_IB_ROCE_VERSION_NUM")) {
    return;
  }
  into.Add("NCCL_IB_GID_INDEX", absl::StrCat(*facts.gid_index),
           "this pod's addresses in the GID tables of all rails");
}

void AddSettings(const config::Settings& settings, Collector& into) {
  if (into.IsSet("RAILHEAD_IB_TC")) {
    into.Add("NCCL_IB_TC", absl::StrCat(settings.ib_traffic_class), "RAILHEAD_IB_TC");
  }
  if (into.IsSet("RAILHEAD_IB_SL")) {
    into.Add("NCCL_IB_SL", absl::StrCat(settings.ib_service_level), "RAILHEAD_IB_SL");
  }
  if (settings.socket_ifname.empty()) return;
  std::vector<std::string> names = {settings.socket_ifname};
  names.insert(names.end(), settings.more_socket_ifnames.begin(),
               settings.more_socket_ifnames.end());
  // Without '=', a name means all that begin with it.
  into.Add("NCCL_SOCKET_IFNAME", absl::StrCat("=", absl::StrJoin(names, ",")),
           "RAILHEAD_SOCKET_IFNAME");
}

// Adds this library as the network plugin, unless the user has chosen a network.
void AddNetwork(const RailFacts& facts, const config::Settings& settings, config::Lookup own,
                Collector& into) {
  if (facts.library.empty() || facts.library.size() > kLongestLibrary ||
      absl::StrContains(facts.library, ',') || into.IsOwn("NCCL_NET_PLUGIN") ||
      own("NCCL_NET").value_or(kName) != kName) {
    return;
  }
  into.Add("NCCL_NET_PLUGIN", facts.library, "the library of this plugin");
  if (settings.require_rdma || settings.fallback == config::Fallback::kFail) {
    into.Add("NCCL_NET", kName,
             settings.require_rdma ? "RAILHEAD_REQUIRE_RDMA" : "RAILHEAD_FALLBACK");
  }
}

}  // namespace

std::vector<Variable> VariablesFor(const RailFacts& facts, const config::Settings& settings,
                                   config::Lookup own) {
  Collector collector(own);
  AddDevices(facts, settings, collector);
  AddSettings(settings, collector);
  AddNetwork(facts, settings, own, collector);
  return collector.Take();
}

}  // namespace railhead::nccl
