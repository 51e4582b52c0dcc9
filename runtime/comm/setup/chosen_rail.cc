// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/setup/chosen_rail.h"

#include <utility>

#include "runtime/net/socket.h"
#include "runtime/transport/tcp/tcp.h"

namespace railhead::comm {

absl::StatusOr<std::unique_ptr<transport::Link>> ChosenRail::Open(
    std::shared_ptr<transport::Acceptor> acceptor, transport::Locator peer_acceptor,
    absl::string_view peer) const {
  return device != nullptr ? device->Open(std::move(acceptor), std::move(peer_acceptor), peer)
                           : transport::OpenTcpLink(std::move(acceptor), std::move(peer_acceptor),
                                                    peer, protection);
}

std::vector<ChosenRail> ChooseRails(const Decision& decision, const OwnRails& own,
                                    const std::vector<net::IpAddress>& tcp) {
  std::vector<ChosenRail> rails;
  for (const int number : decision.rails) {
    const fabric::PodRail& rail = own.pod_rails.find(number)->second;
    rails.push_back({{number, rail.device, rail.port, "verbs"},
                     own.devices.find(number)->second.get(),
                     tcp.front()});
  }
  if (decision.verbs) return rails;
  for (const net::IpAddress& address : tcp) {
    const int number = static_cast<int>(rails.size());
    rails.push_back({{number, net::InterfaceOfAddress(address), 0, "tcp"},
                     nullptr,
                     address,
                     decision.protection});
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
