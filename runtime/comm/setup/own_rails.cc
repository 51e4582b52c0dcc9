// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/setup/own_rails.h"

#include <sched.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "fabric/rails_file.h"
#include "runtime/comm/setup/late_rdma_rail.h"
#include "runtime/net/address.h"
#include "runtime/preflight/attachment.h"
#include "runtime/preflight/local.h"

namespace railhead::comm {
namespace {

// Returns the cores that this process may run on.
Cores AvailableCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof(set), &set);
  Cores cores;
  for (size_t core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &set)) continue;
    cores.resize(core / 8 + 1);
    cores.back() = static_cast<char>(static_cast<unsigned char>(cores.back()) | 1U << core % 8);
  }
  return cores;
}

}  // namespace

OwnRails OpenOwnRails(const std::string& self, const SetupOptions& options) {
  const config::Settings& settings = options.settings;
  OwnRails own;
  own.report.name = self;
  own.report.choice = settings.transport;
  own.report.require_rdma = settings.require_rdma;
  own.report.fallback = settings.fallback;
  own.report.place = options.place;
  own.report.cores = AvailableCores();
  own.report.cpu = ReadCpuLimit(options.root);
  own.report.algorithms = settings.algorithms;
  own.report.ib_traffic_class = settings.ib_traffic_class;
  own.report.ib_service_level = settings.ib_service_level;
  own.report.configured = settings.SetAlike();
  own.report.frames = settings.frames;
  own.report.has_aes = transport::HasAes256Gcm();
  own.report.met = options.met;
  // With another transport, errors of RDMA are irrelevant.
  if (settings.transport == config::TransportChoice::kTcp ||
      settings.transport == config::TransportChoice::kShm) {
    return own;
  }
  const absl::StatusOr<fabric::PodRails> pod_rails =
      fabric::ReadRailsFile(options.root, settings.rails_file);
  own.report.has_rails_file = !absl::IsNotFound(pod_rails.status());
  if (!pod_rails.ok()) {
    own.report.trouble = own.report.has_rails_file
                             ? std::string(pod_rails.status().message())
                             : absl::StrCat("it was given no RDMA device (there is no ",
                                            settings.rails_file, "); request rdma/hca in its pod");
    return own;
  }
  const Logger log(options.settings.log_level, self);
  std::set<int> wanted(settings.rails.begin(), settings.rails.end());
  for (const fabric::PodRail& rail : pod_rails->rails) {
    if (!settings.rails.empty() && wanted.erase(rail.rail) == 0) continue;
    absl::StatusOr<std::unique_ptr<RdmaRail>> device = options.open_rdma_rail(rail);
    preflight::RailFacts facts = preflight::ReadHca(options.root, rail);
    if (device.ok()) facts.port = (*device)->Facts();
    own.report.rails.push_back({rail.rail, rail.device, std::string(device.status().message()),
                                facts.rate, device.ok() ? facts.port->mtu : 0});
    own.facts.rails.push_back(std::move(facts));
    own.pod_rails[rail.rail] = rail;
    if (!device.ok()) {
      own.devices[rail.rail] = MakeLateRdmaRail(options.open_rdma_rail, rail, device.status(), log);
      continue;
    }
    log.Info((*device)->Describe());
    own.devices[rail.rail] = *std::move(device);
  }
  preflight::FindAttachments(options.root, pod_rails->rails, net::OwnAddresses(),
                             absl::MakeSpan(own.facts.rails));
  // Rails that are missing come last, so that facts and reports have the same order.
  for (const int rail : wanted) {
    own.report.rails.push_back({rail, "",
                                absl::StrCat(settings.SetBy("rails"), " lists it, but ",
                                             settings.rails_file, " does not contain it")});
  }
  return own;
}

std::vector<TcpRail> OwnTcpRails(const config::Settings& settings,
                                 const std::optional<net::IpAddress>& local,
                                 const std::vector<TcpRail>& known) {
  if (settings.socket_ifname.empty()) {
    const net::IpAddress address = local.value_or(net::LikelyPublicAddress());
    return {{net::InterfaceOfAddress(address), false, address}};
  }
  std::vector<std::string> names = {settings.socket_ifname};
  names.insert(names.end(), settings.more_socket_ifnames.begin(),
               settings.more_socket_ifnames.end());
  std::vector<TcpRail> rails;
  for (const std::string& name : names) {
    TcpRail& rail = rails.emplace_back(FindTcpRail(name));
    const auto before = std::find_if(known.begin(), known.end(), [&name](const TcpRail& candidate) {
      return candidate.interface == name && !candidate.unknown;
    });
    if (before == known.end()) continue;
    rail.unknown = false;
    if (!rail.address.has_value()) rail.address = before->address;
  }
  return rails;
}

std::optional<net::IpAddress> ControlAddress(const std::vector<TcpRail>& rails) {
  std::optional<net::IpAddress> address;
  for (const TcpRail& rail : rails) {
    if (rail.trouble.empty()) return rail.address;
    if (!address.has_value()) address = rail.address;
  }
  return address;
}

}  // namespace railhead::comm
