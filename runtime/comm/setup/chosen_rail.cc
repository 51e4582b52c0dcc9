// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/setup/chosen_rail.h"

#include <algorithm>
#include <utility>

#include "runtime/transport/late_link.h"
#include "runtime/transport/tcp/tcp.h"

namespace railhead::comm {

absl::StatusOr<std::unique_ptr<transport::Link>> ChosenRail::Open(
    std::shared_ptr<transport::Acceptor> acceptor, transport::Locator peer_acceptor,
    absl::string_view peer) const {
  if (device == nullptr) {
    return transport::OpenTcpLink(std::move(acceptor), std::move(peer_acceptor), peer, protection);
  }
  return transport::LateLink::Open(
      [device = device, acceptor = std::move(acceptor), peer_acceptor = std::move(peer_acceptor),
       name = std::string(peer)] { return device->Open(acceptor, peer_acceptor, name); },
      RdmaRail::kMaxPayload);
}

std::vector<ChosenRail> ChooseRails(const Decision& decision, const OwnRails& own,
                                    const std::vector<TcpRail>& tcp) {
  std::vector<ChosenRail> rails;
  for (const int number : decision.rails) {
    const fabric::PodRail& rail = own.pod_rails.find(number)->second;
    const auto report =
        std::find_if(own.report.rails.begin(), own.report.rails.end(),
                     [number](const RailReport& candidate) { return candidate.rail == number; });
    rails.push_back({{number, rail.device, rail.port, "verbs"},
                     own.devices.find(number)->second.get(),
                     {"", false, ControlAddress(tcp)},
                     {},
                     report->trouble});
  }
  if (decision.verbs) return rails;
  for (const TcpRail& rail : tcp) {
    const int number = static_cast<int>(rails.size());
    rails.push_back(
        {{number, rail.interface, 0, "tcp"}, nullptr, rail, decision.protection, rail.trouble});
  }
  return rails;
}

std::vector<OpenRail> OpenRails(const std::vector<ChosenRail>& rails, const Acceptors& acceptors) {
  std::vector<OpenRail> open;
  open.reserve(rails.size());
  for (size_t k = 0; k < rails.size(); ++k) {
    open.push_back({rails[k].name, acceptors[k],
                    [rail = rails[k]](std::shared_ptr<transport::Acceptor> acceptor,
                                      transport::Locator peer, absl::string_view name) {
                      return rail.Open(std::move(acceptor), std::move(peer), name);
                    }});
  }
  return open;
}

}  // namespace railhead::comm
